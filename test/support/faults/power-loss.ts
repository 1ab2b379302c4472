import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Checker } from '../../../scripts/crash-loop/check.mjs'
import { send } from '../../../scripts/crash-loop/request.mjs'
import { between, seededRandom } from '../../../scripts/crash-loop/seeded-random.mjs'
import { startVictim } from '../../../scripts/crash-loop/victim.mjs'
import { DiskImage } from './disk-image.js'
import type { DiskShim } from './disk-shim.js'
import { readTrace } from './disk-trace.js'

/**
 * Rounds on one data directory before a new one is used, so that it stays small and first starts are often
 * interrupted.
 */
const ROUNDS_OF_A_LIFE = 20

/** The number of first starts of a directory that are interrupted. */
const CUT_STARTS = 3

/**
 * The approximate number of changes and syncs of a first start. The loss of power is before one of them, or
 * after all.
 */
const FIRST_START_CALLS = 60

/** The maximum number of changes and syncs under load before the loss of power. */
const LOADED_CALLS_MAX = 300

/** The delay of each sync in half of the rounds, milliseconds. */
const SLOW_MS = 2

/** The maximum time of load before the loss of power, milliseconds. */
const LOADED_MS_MAX = 1_500

/** The agent whose records are erased, in addition to the crash loop's load. */
const erasedAgent = 'power-erased'

/** The result of the rounds. */
export interface PowerLosses {
  faults: string[]
  cuts: number
  answered: number
  /** The directory in which a fault was found. */
  kept?: string
}

/** The journal of the crash loop's load: requests and their answers. */
type Journal = Parameters<Checker['check']>[1]['journal']

/**
 * Simulates losses of power of a server under load. After each, starts a server on the state that the disk
 * may have, and checks that nothing acknowledged is lost, that there are no duplicates, and that the strands
 * verify.
 */
export async function losePower(
  shim: DiskShim,
  { rounds, seed }: { rounds: number; seed: number },
): Promise<PowerLosses> {
  const random = seededRandom(seed)
  const total: PowerLosses = { faults: [], cuts: 0, answered: 0 }
  const load = fork(join(import.meta.dirname, '../../../scripts/crash-loop/load.mjs'), { execArgv: [] })
  try {
    for (let done = 0; done < rounds && total.faults.length === 0; done += ROUNDS_OF_A_LIFE) {
      const life = new Life(shim, load, random)
      await life.run(Math.min(ROUNDS_OF_A_LIFE, rounds - done))
      total.faults.push(...life.faults)
      total.cuts += life.cuts
      total.answered += life.answered
      if (life.faults.length > 0) total.kept = life.directory
      else rmSync(life.directory, { recursive: true, force: true })
    }
    return total
  } finally {
    load.disconnect()
  }
}

/** The rounds on one data directory, from its first start. */
class Life {
  readonly directory = mkdtempSync(join(tmpdir(), 'strandfast-power-'))
  readonly faults: string[] = []
  cuts = 0
  answered = 0
  readonly #shim: DiskShim
  readonly #load: ChildProcess
  readonly #random: () => number
  readonly #checker = new Checker()
  readonly #data = join(this.directory, 'data')
  /** Hashes of records whose erasure was acknowledged. */
  readonly #erased: string[] = []

  constructor(shim: DiskShim, load: ChildProcess, random: () => number) {
    this.#shim = shim
    this.#load = load
    this.#random = random
    mkdirSync(this.#data, { mode: 0o700 })
  }

  async run(rounds: number): Promise<void> {
    for (let start = 0; start < CUT_STARTS; start++) await this.#cutStart()
    let journal: Journal = []
    for (let round = 0; round < rounds && this.faults.length === 0; round++) {
      journal = await this.#round(round, journal)
    }
    if (this.faults.length > 0) return
    const victim = startVictim(this.#data)
    await this.#check(victim, { journal, whole: true })
    const code = await victim.stop()
    if (code !== 0) this.faults.push(`The server stopped with ${code}:\n${victim.stderr()}`)
  }

  /** A start that loses power before its Nth change. */
  async #cutStart(): Promise<void> {
    const image = new DiskImage(this.#data)
    const victim = this.#start()
    this.#cutAfter(between(this.#random, 1, FIRST_START_CALLS))
    const url = await victim.listening()
    if (url !== undefined) await victim.kill()
    this.#leave(image)
  }

  /**
   * Checks the state after the previous round, loads the server, and cuts the power.
   * @returns the journal of the load
   */
  async #round(round: number, before: Journal): Promise<Journal> {
    const image = new DiskImage(this.#data)
    const victim = this.#start()
    try {
      const url = await this.#check(victim, { journal: before, whole: round % 5 === 4 })
      if (url === undefined) return []
      const begun = once(this.#load, 'message')
      this.#load.send({ url, seed: between(this.#random, 0, 2 ** 31), prefix: `r${round}` })
      const erasing = this.#erase(url)
      this.#cutAfter(between(this.#random, 1, LOADED_CALLS_MAX))
      await Promise.race([victim.exited, pause(LOADED_MS_MAX, undefined, { ref: false })])
      await victim.kill()
      await erasing
      await begun
    } finally {
      await victim.kill()
    }
    const journaled = once(this.#load, 'message')
    this.#load.send('stop')
    const [reported]: { journal: Journal }[] = await journaled
    if (reported === undefined) throw new Error('The load has sent no journal')
    const { journal } = reported
    this.answered += journal.filter(({ answer }) => answer !== undefined).length
    this.#leave(image)
    return journal
  }

  async #check(
    victim: ReturnType<typeof startVictim>,
    scope: { journal: Journal; whole: boolean },
  ): Promise<string | undefined> {
    try {
      const url = await victim.listening()
      if (url === undefined) throw new Error('The server ended before it listened')
      this.faults.push(...(await this.#checker.check(url, scope)).faults)
      for (const hash of this.#erased) await this.#checkErased(url, hash)
      return this.faults.length === 0 ? url : undefined
    } catch (error) {
      this.faults.push(`${inspect(error)}\nThe server: ${victim.ended() ?? 'runs'} ${victim.stderr()}`)
      return undefined
    }
  }

  /** Writes records and erases them until the server ends. */
  async #erase(url: string): Promise<void> {
    const post = (path: string, body?: unknown) =>
      send(url, {
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    try {
      await post('/v1/agents', { name: erasedAgent, zone: 'free' })
      for (;;) {
        const { body } = await post(`/v1/agents/${erasedAgent}/records`, { data: { text: 'to be erased' } })
        const { status } = await post(`/v1/agents/${erasedAgent}/records/${body.content_hash}/erase`)
        if (status === 200) this.#erased.push(body.content_hash)
        else this.faults.push(`An erasure returned ${status}`)
      }
    } catch {
      // The power was cut, so the outcome of the last call is unknown.
    }
  }

  async #checkErased(url: string, hash: string): Promise<void> {
    const path = `/v1/agents/${erasedAgent}/records/${hash}`
    const { status, body } = await send(url, { method: 'GET', path })
    if (status !== 200 || body.erased !== true || body.payload !== null)
      this.faults.push(
        `Record ${hash} is not erased although that was acknowledged: ${status} ${JSON.stringify(body)}`,
      )
  }

  #start(): ReturnType<typeof startVictim> {
    for (const name of ['trace', 'cut']) rmSync(join(this.directory, name), { force: true })
    const settings = {
      SHIM_TRACE: join(this.directory, 'trace'),
      SHIM_CUT: join(this.directory, 'cut'),
      // With a slow disk, a shard decides the next group during a sync.
      SHIM_SLOW: String(this.#random() < 0.5 ? 0 : SLOW_MS),
      // The shim identifies files by their path.
      SERVICE_DATA_DIR: this.#data,
    }
    return startVictim(this.#data, this.#shim.under(this.#data, settings))
  }

  #cutAfter(calls: number): void {
    const file = join(this.directory, 'cut')
    writeFileSync(`${file}.new`, String(calls))
    renameSync(`${file}.new`, file)
  }

  /**
   * Replaces the directory by the state that the disk may have. The previous state stays in `before` for
   * debugging.
   */
  #leave(image: DiskImage): void {
    image.replay(readTrace(join(this.directory, 'trace')))
    const before = join(this.directory, 'before')
    rmSync(before, { recursive: true, force: true })
    renameSync(this.#data, before)
    image.writeAfterPowerLoss(this.#data, this.#random)
    this.cuts++
  }
}
