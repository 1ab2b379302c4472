import { setTimeout as pause } from 'node:timers/promises'
import { limits } from '../base/limits/limits.js'
import type { Control } from '../data/backup/control.js'
import type { Fronts } from './fronts/fronts.js'
import type { Parts } from './parts.js'

/** A part of the server: it is started after those before it in the list, and stopped before them. */
export interface Part {
  name: string
  start?(): unknown
  /** Called also where `start` has failed in the middle. */
  stop?(): unknown
}

/** Starts parts in the order of their list, and stops those that were started in the reverse order. */
export class Lifecycle {
  readonly #parts: readonly Part[]
  readonly #begun: Part[] = []

  constructor(parts: readonly Part[]) {
    this.#parts = parts
  }

  /** @throws what a part throws, and nothing after it is started; the reason of the signal, where that ends the start */
  async start(signal: AbortSignal): Promise<void> {
    for (const part of this.#parts) {
      signal.throwIfAborted()
      this.#begun.push(part)
      await part.start?.()
    }
  }

  /**
   * Stops all, even where one of them fails: a process that exits while its threads have stores open can hang or crash in
   * native code.
   * @throws Error that names the first part that could not be stopped
   */
  async stop(): Promise<void> {
    let failure: Error | undefined
    for (const part of this.#begun.splice(0).reverse()) {
      try {
        await part.stop?.()
      } catch (cause) {
        failure ??= new Error(`Could not stop ${part.name}: ${String(cause)}`, { cause })
      }
    }
    if (failure !== undefined) throw failure
  }
}

/** Whether something ends, well or not, within a time. */
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

/** What has threads. */
interface EndingParts {
  parts: Pick<Parts, 'threads' | 'pools' | 'sink'>
  control: Control
  fronts: Fronts | undefined
}

/**
 * Ends the process even if threads hang: with the exit code given once all have ended. An exit ends those that are left from outside, and
 * the process crashes or waits for ever where one is in a native call. So if one stays, the process kills itself.
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
  // The first process of a container is not killed by a signal of its own.
  process.abort()
}
