import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Checker } from './check.mjs'
import { LoadProcess } from './load-process.mjs'
import { between } from './seeded-random.mjs'
import { startVictim } from './victim.mjs'

/** How long after its first answer a loaded server is killed, milliseconds. */
const LOADED_MS = { least: 0, most: 230 }

/** How long a start takes until one was seen, milliseconds. */
const START_MS = 1_000

/** One data directory from its first start on, and the server on it that is killed over and over. */
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
  /** How many its directory is made with. */
  #shards
  #startMs = START_MS
  /** What the server was asked since strands were verified. @type {import('./check.mjs').Entry[]} */
  #journal = []
  /** Where in the journal that begins which was not looked at yet. */
  #glancedAt = 0

  /**
   * @param {string} directory where the data directory is made, and what else its rounds need
   * @param {() => number} random
   */
  constructor(directory, random) {
    this.directory = directory
    this.dataDir = join(directory, 'data')
    this.random = random
    this.#shards = between(random, 1, 2)
  }

  /** Where the server listens. */
  get url() {
    if (this.#running === undefined) throw new Error('Expected a server that runs')
    return this.#running.url
  }

  /** Whether the server still runs that was checked last. */
  get isRunning() {
    return this.#running !== undefined
  }

  /** Where strands were last seen to end, by agent. */
  get heads() {
    return this.#checker.heads
  }

  /** Loads the server, and resolves when it has answered a call. The caller kills it. */
  beginLoad() {
    return this.#load.begin({
      url: this.url,
      seed: between(this.random, 0, 2 ** 31),
      prefix: `r${this.#rounds++}`,
    })
  }

  /** Kills the server at a random moment of its load. @returns {Promise<string>} what happened */
  async killUnderLoad() {
    await this.beginLoad()
    const livedMs = between(this.random, LOADED_MS.least, LOADED_MS.most)
    await pause(livedMs)
    return `killed after ${livedMs} ms; ${await this.killLoaded()}`
  }

  /** Kills the loaded server now. @returns {Promise<string>} what it was asked */
  async killLoaded() {
    await this.kill()
    // Counted after the kill: all that the load was answered, it was answered before.
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

  /** Kills a start at a random moment of the time that one takes. @returns {Promise<string>} what happened */
  async killStart() {
    const victim = startVictim(this.dataDir, {}, this.#shards)
    // Looked at later, or never: a start that fails by itself fails the next round too.
    const listening = victim.listening().catch(() => undefined)
    const livedMs = Math.round(this.random() * this.#startMs)
    await Promise.race([listening, pause(livedMs)])
    await victim.kill()
    await listening
    return `a start killed after ${livedMs} ms`
  }

  /**
   * Starts a server, which goes on running, and checks what there is: each time whether everything that was answered
   * since the last time is there.
   * @param {{strands: boolean, whole: boolean}} extent whether strands are verified, and whether from their beginnings
   * @returns {Promise<string>} what there is
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

  /** Starts a server where none runs. */
  async start() {
    if (this.#running !== undefined) return
    const victim = startVictim(this.dataDir, {}, this.#shards)
    const startedMs = performance.now()
    try {
      const url = await victim.listening()
      if (url === undefined) throw new Error('Expected a server that nobody has killed')
      this.#startMs = performance.now() - startedMs
      this.#running = { victim, url }
    } finally {
      if (this.#running === undefined) await victim.kill()
    }
  }

  /** Stops the server in order, and the load. */
  async end() {
    this.#load.end()
    if (this.#running === undefined) return
    const { victim } = this.#running
    const code = await victim.stop()
    if (code !== 0) this.faults.push(`The server stopped with ${code}:\n${victim.stderr()}`)
    this.#running = undefined
  }
}
