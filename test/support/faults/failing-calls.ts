import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { startVictim } from '../../../scripts/crash-loop/victim.mjs'
import type { DiskShim } from './disk-shim.js'
import { FailingDisk, type FailingCall } from './failing-disk.js'
import { FailingLoad, type Findings } from './failing-load.js'

/** The result of several failing calls. */
export interface FailedCalls extends Findings {
  /** Processes that the failure ended. */
  ended: number
}

/** The result of one failing call. */
export interface FailedCall extends FailedCalls {
  /**
   * Whether the call was made before the server listened or later; undefined if there were fewer calls of its
   * kind.
   */
  hit: 'start' | 'load' | undefined
}

/** The numbers of the calls to fail, in order. */
export interface Numbers {
  /** The last number that was used. */
  last: number
  step: number
  /** Set when a call with its number was never made. */
  ended: boolean
}

/** Loads of one server. Not many, because a shard that dies often is restarted with a delay. */
const LOADS_OF_A_SERVER = 6

/** How long a process may take to end, milliseconds. */
const EXIT_MS = 5_000

/**
 * Makes the Nth call of a kind fail, counted from the start of a server on a new directory, which then gets a
 * few requests. Another server, without failures, then checks that each record exists once.
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
    const survived = await servers.survives(async () => {
      const url = await servers.listening()
      hitAtStart = disk.hit
      await new FailingLoad(url, agent, found).run()
    })
    if (survived) await servers.stop()
    disk.stopFailing()
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
 * Makes the Nth call of a kind fail, counted on a running server from the first of a few requests. Repeats
 * this for one N after another, each with requests to a new agent. After some of them another server checks
 * that each record exists once.
 * @param numbers may be shared by concurrent runs
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
    /** A number to use again, because an earlier failure ended the server before this call. */
    let retry: number | undefined
    /** Each run takes one number at least, even if another run has reached the last one before. */
    let isFirst = true
    while (before.length > 0 || retry !== undefined || !numbers.ended || isFirst) {
      servers.start()
      const url = await servers.listening()
      for (const agent of before) await new FailingLoad(url, agent, found).run()
      before = []
      let survived = true
      const continues = () => retry !== undefined || !numbers.ended || isFirst
      while (survived && continues() && before.length < LOADS_OF_A_SERVER) {
        isFirst = false
        const nth: number = retry ?? (numbers.last += numbers.step)
        const agent = agentOf(nth)
        before.push(agent)
        servers.fail(nth)
        survived = await servers.survives(() => new FailingLoad(url, agent, found).run())
        servers.disk.stopFailing()
        retry = survived || servers.disk.hit ? undefined : nth
        if (survived && !servers.disk.hit) numbers.ended = true
      }
      if (survived) await servers.stop()
    }
  } catch (error) {
    found.faults.push(`Up to number ${numbers.last}: ${inspect(error)}`)
  } finally {
    await servers.remove()
  }
  return found
}

/** Servers with failing calls, one after another, on a new directory. */
class Servers {
  readonly disk: FailingDisk
  readonly #directory: string
  readonly #data: string
  readonly #environment: Record<string, string>
  readonly #call: FailingCall
  readonly #found: FailedCalls
  #victim: ReturnType<typeof startVictim> | undefined
  #listened = false
  /** Whether an earlier call of the current server has failed. */
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

  /** Makes the Nth call from now fail. */
  fail(nth: number): void {
    this.#failedBefore ||= this.disk.hit
    this.disk.fail(this.#call, nth)
  }

  /** Starts the next server. The previous one must have ended. */
  start(): void {
    this.#listened = false
    this.#failedBefore = false
    this.#victim = startVictim(this.#data, this.#environment)
  }

  /** The address of the server. @throws Error if it has ended itself */
  async listening(): Promise<string> {
    const url = await this.#victim?.listening()
    if (url === undefined) throw new Error('Expected a server that was not ended by the test')
    this.#listened = true
    return url
  }

  /**
   * Whether the server still runs after `work`. The failing call may end it, by a refused start with a
   * reason, or by a known crash of LMDB.
   * @throws Error if it ended in another way, or if `work` fails although the server runs
   */
  async survives(work: () => Promise<void>): Promise<boolean> {
    const victim = this.#victim
    if (victim === undefined) throw new Error('Expected a server')
    try {
      await work()
      return true
    } catch (error) {
      // A connection may break before the process ends.
      await Promise.race([victim.exited, pause(EXIT_MS, undefined, { ref: false })])
      const ended = victim.ended()
      await victim.kill()
      const refusedToStart = !this.#listened && typeof ended === 'number' && victim.stderr() !== ''
      if (this.disk.hit && refusedToStart) return false
      if (!this.#isKnownCrash(ended))
        throw new Error(`The server ended with ${ended}: ${victim.stderr()}`, { cause: error })
      this.#found.ended++
      return false
    }
  }

  /** Shuts the server down, unless it has ended already. */
  async stop(): Promise<void> {
    const wasHit = this.disk.hit
    const code = await this.#victim?.stop()
    // The failing call may be one of its last.
    if (code === 0 || (this.disk.hit && !wasHit)) return
    if (this.#isKnownCrash(this.#victim?.ended() ?? null)) this.#found.ended++
    else this.#found.faults.push(`The server stopped with ${code}: ${this.#victim?.stderr()}`)
  }

  /**
   * Two known crashes of lmdb-js 3.5.6, after which a supervisor restarts the process: if LMDB cannot open a
   * store, and if a write to one fails, because the error text is longer than its buffer. The process ends
   * itself if it notices such a text; otherwise it may crash later.
   */
  #isKnownCrash(ended: number | string | null): boolean {
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
