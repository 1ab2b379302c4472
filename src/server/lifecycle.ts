import { setTimeout as pause } from 'node:timers/promises'
import { limits } from '../base/limits/limits.js'
import type { Control } from '../data/backup/control.js'
import type { Fronts } from './fronts/fronts.js'
import type { Parts } from './parts.js'

/** A part of the server: it starts after the parts before it in the list, and stops before them. */
export interface Part {
  name: string
  start?(): unknown
  /** Called even if `start` has failed half-way. */
  stop?(): unknown
}

/** Starts parts in order, and stops the started ones in reverse order. */
export class Lifecycle {
  readonly #parts: readonly Part[]
  readonly #started: Part[] = []

  constructor(parts: readonly Part[]) {
    this.#parts = parts
  }

  /**
   * @throws the error of a part, after which no further part starts; the reason of the signal if it ends the
   * start
   */
  async start(signal: AbortSignal): Promise<void> {
    for (const part of this.#parts) {
      signal.throwIfAborted()
      this.#started.push(part)
      await part.start?.()
    }
  }

  /**
   * Stops all started parts, even if one fails: a process that exits while its threads have stores open can
   * hang or crash in native code.
   * @throws Error that names the first part that could not be stopped
   */
  async stop(): Promise<void> {
    let failure: Error | undefined
    for (const part of this.#started.splice(0).reverse()) {
      try {
        await part.stop?.()
      } catch (cause) {
        failure ??= new Error(`Could not stop ${part.name}: ${String(cause)}`, { cause })
      }
    }
    if (failure !== undefined) throw failure
  }
}

export function endsWithin(timeMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setTimeout(() => resolve(false), timeMs)
    const ended = () => {
      clearTimeout(late)
      resolve(true)
    }
    work.then(ended, ended)
  })
}

interface EndingParts {
  parts: Pick<Parts, 'threads' | 'pools' | 'sink'>
  control: Control
  fronts: Fronts | undefined
}

/**
 * Ends the process even if threads hang. If all threads end in time, the process exits with the code.
 * Otherwise it kills itself, because an exit would terminate the remaining threads, and the process crashes
 * or hangs if one is in a native call.
 */
export async function endProcess({ parts, control, fronts }: EndingParts, code: number): Promise<void> {
  const { threads, pools, sink } = parts
  const all = [
    threads.abandon(),
    fronts?.close(),
    sink?.stop(),
    control.close(),
    ...pools.map((pool) => pool.close()),
  ]
  const ended = Promise.all(all).then(
    () => true,
    () => false,
  )
  const isOver = !threads.isStuck && (await Promise.race([ended, pause(limits.processEndMs, false)]))
  if (isOver) process.exit(code)
  process.kill(process.pid, 'SIGKILL')
  // The first process of a container ignores signals that it sends to itself.
  process.abort()
}
