import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Checker } from './check.mjs'
import { LoadProcess } from './load-process.mjs'
import { between } from './seeded-random.mjs'
import { startVictim } from './victim.mjs'

/** The lifetime of a loaded server after its first answer, milliseconds. */
const LOADED_MS = { least: 0, most: 230 }

/** The assumed duration of a start before one was measured, milliseconds. */
const START_MS = 1_000

/** A data directory from its first start on, with the server that is repeatedly killed on it. */
export class Life {
  /** @type {string[]} */
  faults = []
  answered = 0
  unanswered = 0
  records = 0
  #load = new LoadProcess()
  #checker = new Checker()
  /** @type {{victim: ReturnType<typeof startVictim>, url: string} | undefined} */
  #running
  #rounds = 0
  /** The number of shards of a new directory. */
  #shards
  #startMs = START_MS
  /** The requests since strands were last verified. @type {import('./check.mjs').Entry[]} */
  #journal = []
  /** The index of the first unchecked entry of the journal. */
  #glancedAt = 0

  /**
   * @param {string} directory for the data directory and other files of its rounds
   * @param {() => number} random
   */
  constructor(directory, random) {
    this.directory = directory
    this.dataDir = join(directory, 'data')
    this.random = random
    this.#shards = between(random, 1, 2)
  }

  /** The address of the server. */
  get url() {
    if (this.#running === undefined) throw new Error('The server is not running')
    return this.#running.url
  }

  /** Whether the last checked server is still running. */
  get isRunning() {
    return this.#running !== undefined
  }

  /** The last known heads of strands, by agent. */
  get heads() {
    return this.#checker.heads
  }

  /** Loads the server, and resolves after its first answer. The caller kills it. */
  beginLoad() {
    return this.#load.begin({
      url: this.url,
      seed: between(this.random, 0, 2 ** 31),
      prefix: `r${this.#rounds++}`,
    })
  }

  /** Kills the server at a random moment under load. @returns {Promise<string>} what happened */
  async killUnderLoad() {
    await this.beginLoad()
    const aliveMs = between(this.random, LOADED_MS.least, LOADED_MS.most)
    await pause(aliveMs)
    return `killed after ${aliveMs} ms; ${await this.killLoaded()}`
  }

  /** Kills the loaded server. @returns {Promise<string>} the number of answered calls */
  async killLoaded() {
    await this.kill()
    // Counted after the kill, which came after all answers.
    const { journal, acted } = await this.#load.stop()
    this.#journal.push(...journal)
    const answered = journal.filter(({ answer }) => answer !== undefined).length
    this.answered += answered + acted
    this.unanswered += journal.length - answered
    return `${answered} and ${acted} calls answered`
  }

  /** Kills the server, if one runs. */
  async kill() {
    await this.#running?.victim.kill()
    this.#running = undefined
  }

  /** Kills a start at a random moment. @returns {Promise<string>} what happened */
  async killStart() {
    const victim = startVictim(this.dataDir, {}, this.#shards)
    // Ignored if the start fails by itself, since the next round fails too.
    const listening = victim.listening().catch(() => undefined)
    const aliveMs = Math.round(this.random() * this.#startMs)
    await Promise.race([listening, pause(aliveMs)])
    await victim.kill()
    await listening
    return `a start killed after ${aliveMs} ms`
  }

  /**
   * Starts a server, which keeps running, and checks that everything that was confirmed since the last check
   * exists.
   * @param {{strands: boolean, whole: boolean}} extent whether strands are verified, and whether completely
   * @returns {Promise<string>} the numbers of records and strands
   */
  async check({ strands, whole }) {
    await this.start()
    const journal = this.#journal
    const result = strands
      ? await this.#checker.check(this.url, { journal, whole })
      : await this.#checker.glance(this.url, journal.slice(this.#glancedAt))
    if (strands) this.#journal = []
    this.#glancedAt = this.#journal.length
    this.records = result.records
    const { faults } = await this.#load.look(this.url, whole)
    this.faults.push(...result.faults, ...faults)
    return `${result.records} records on ${result.strands} strands`
  }

  /** Starts a server unless one is running. */
  async start() {
    if (this.#running !== undefined) return
    const victim = startVictim(this.dataDir, {}, this.#shards)
    const startedMs = performance.now()
    try {
      const url = await victim.listening()
      if (url === undefined) throw new Error('The server was killed')
      this.#startMs = performance.now() - startedMs
      this.#running = { victim, url }
    } finally {
      if (this.#running === undefined) await victim.kill()
    }
  }

  /** Stops the server gracefully, and the load. */
  async end() {
    this.#load.end()
    if (this.#running === undefined) return
    const { victim } = this.#running
    const code = await victim.stop()
    if (code !== 0) this.faults.push(`The server stopped with ${code}:\n${victim.stderr()}`)
    this.#running = undefined
  }
}
