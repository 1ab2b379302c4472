import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { startVictim } from '../../../scripts/crash-loop/victim.mjs'
import type { DiskShim } from './disk-shim.js'
import { FailingDisk, type FailingCall } from './failing-disk.js'
import { FailingLoad, type Findings } from './failing-load.js'

/** What came of calls that failed. */
export interface FailedCalls extends Findings {
  /** Processes that the failure ended. */
  ended: number
}

/** What came of one call that failed. */
export interface FailedCall extends FailedCalls {
  /** Whether that call came before the server listened, later, or never: there are fewer of that kind. */
  hit: 'start' | 'load' | undefined
}

/** The numbers of the calls that are to fail, in order; whoever comes to one that never comes ends them. */
export interface Numbers {
  /** The one that came last. */
  last: number
  step: number
  ended: boolean
}

/** Loads of one server. A shard that has died often waits before its thread is started again. */
const LOADS_OF_A_SERVER = 6

/** How long a process that is ending may take, milliseconds. */
const EXIT_MS = 5_000

/**
 * Has the Nth call of a kind fail, counted from the start of a server on a new directory, which is then sent a few
 * requests. Looks with another one, under which nothing fails, whether everything is there once.
 */
export async function failFromStart(shim: DiskShim, call: FailingCall, nth: number): Promise<FailedCall> {
  const found: FailedCall = { hit: undefined, faults: [], refused: 0, ended: 0 }
  const agent = agentOf(nth)
  const servers = new Servers(shim, call, found)
  try {
    const { disk } = servers
    servers.fail(nth)
    servers.start()
    let hitAtStart = true
    const lived = await servers.outlives(async () => {
      const url = await servers.listening()
      hitAtStart = disk.hit
      await new FailingLoad(url, agent, found).run()
    })
    if (lived) await servers.stop()
    disk.spare()
    if (disk.hit) found.hit = hitAtStart ? 'start' : 'load'
    servers.start()
    await new FailingLoad(await servers.listening(), agent, found).run()
    await servers.stop()
  } catch (error) {
    found.faults.push(inspect(error))
  } finally {
    await servers.remove()
  }
  return found
}

/**
 * Has the Nth call of a kind fail, counted on a running server from the first of a few requests, one N after the other,
 * each under requests to an agent of its own. After some of them another server looks whether everything is there once.
 * @param numbers may be shared by several that run at once
 */
export async function failWhileRunning(
  shim: DiskShim,
  call: FailingCall,
  numbers: Numbers,
): Promise<FailedCalls> {
  const found: FailedCalls = { faults: [], refused: 0, ended: 0 }
  const servers = new Servers(shim, call, found)
  try {
    let before: string[] = []
    /** The server was gone before this call came, by one that had failed before. */
    let again: number | undefined
    while (before.length > 0 || again !== undefined || !numbers.ended) {
      servers.start()
      const url = await servers.listening()
      for (const agent of before) await new FailingLoad(url, agent, found).run()
      before = []
      let lived = true
      while (lived && (again !== undefined || !numbers.ended) && before.length < LOADS_OF_A_SERVER) {
        const nth: number = again ?? (numbers.last += numbers.step)
        const agent = agentOf(nth)
        before.push(agent)
        servers.fail(nth)
        lived = await servers.outlives(() => new FailingLoad(url, agent, found).run())
        servers.disk.spare()
        again = lived || servers.disk.hit ? undefined : nth
        if (lived && !servers.disk.hit) numbers.ended = true
      }
      if (lived) await servers.stop()
    }
  } catch (error) {
    found.faults.push(`Up to number ${numbers.last}: ${inspect(error)}`)
  } finally {
    await servers.remove()
  }
  return found
}

/** Servers on a new directory, one after the other, below which calls fail. */
class Servers {
  readonly disk: FailingDisk
  readonly #directory: string
  readonly #data: string
  readonly #environment: Record<string, string>
  readonly #call: FailingCall
  readonly #found: FailedCalls
  #victim: ReturnType<typeof startVictim> | undefined
  #listened = false
  /** Calls of the server that failed before the one that is to fail now. */
  #failedBefore = false

  constructor(shim: DiskShim, call: FailingCall, found: FailedCalls) {
    this.#directory = mkdtempSync(join(tmpdir(), 'strandfast-failing-'))
    this.#data = join(this.#directory, 'data')
    mkdirSync(this.#data, { mode: 0o700 })
    this.disk = new FailingDisk(join(this.#directory, 'failing'))
    this.#environment = shim.under(this.#data, { SERVICE_SHARDS: '1', ...this.disk.settings })
    this.#call = call
    this.#found = found
  }

  /** From now on the Nth call fails. */
  fail(nth: number): void {
    this.#failedBefore ||= this.disk.hit
    this.disk.fail(this.#call, nth)
  }

  /** Starts the next one. The one before has ended. */
  start(): void {
    this.#listened = false
    this.#failedBefore = false
    this.#victim = startVictim(this.#data, this.#environment)
  }

  /** Its address. @throws Error when it ended itself */
  async listening(): Promise<string> {
    const url = await this.#victim?.listening()
    if (url === undefined) throw new Error('Expected a server that nobody has ended')
    this.#listened = true
    return url
  }

  /**
   * Whether the server is still there behind `work`. The call that fails may end it: as it starts, with a word, and as
   * LMDB does.
   * @throws Error when it was ended otherwise, or fails though it is there
   */
  async outlives(work: () => Promise<void>): Promise<boolean> {
    const victim = this.#victim
    if (victim === undefined) throw new Error('Expected a server')
    try {
      await work()
      return true
    } catch (error) {
      // A broken connection may be told of before the end of the process.
      await Promise.race([victim.exited, pause(EXIT_MS, undefined, { ref: false })])
      const ended = victim.ended()
      await victim.kill()
      const refusedToStart = !this.#listened && typeof ended === 'number' && victim.stderr() !== ''
      if (this.disk.hit && refusedToStart) return false
      if (!this.#isKnownEnd(ended))
        throw new Error(`The server ended with ${ended}: ${victim.stderr()}`, { cause: error })
      this.#found.ended++
      return false
    }
  }

  /** Stops it in order, unless it has ended already. */
  async stop(): Promise<void> {
    const wasHit = this.disk.hit
    const code = await this.#victim?.stop()
    // The call that fails may be one of its last.
    if (code === 0 || (this.disk.hit && !wasHit)) return
    if (this.#isKnownEnd(this.#victim?.ended() ?? null)) this.#found.ended++
    else this.#found.faults.push(`The server stopped with ${code}: ${this.#victim?.stderr()}`)
  }

  /**
   * Two ways in which lmdb-js 3.5.6 takes the process along, which then is started again by whoever watches over it:
   * where LMDB cannot open a store, and where a write to one fails, which it reports by a text longer than the memory for
   * it. It ends itself where it sees such a text, and else may be ended later.
   */
  #isKnownEnd(ended: number | string | null): boolean {
    if (!this.disk.hit && !this.#failedBefore) return false
    const { kind } = this.#call
    if (ended === 'SIGSEGV') return kind !== 'sync'
    const writes = kind === 'write' || kind === 'late'
    if (ended === 1) return writes && (this.#victim?.stderr() ?? '').includes('LMDB wrote past')
    return writes && ended === 'SIGABRT'
  }

  async remove(): Promise<void> {
    await this.#victim?.kill()
    this.disk.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function agentOf(nth: number): string {
  return `failing-${nth}`
}
