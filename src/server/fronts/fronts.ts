import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import type { HttpServer } from '../../front/http/server.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { Config } from '../../settings/config.js'
import type { PeersTold } from '../calls/front-messages.js'
import type { FrontStart } from './front-thread.js'
import { FrontThread } from './front-thread.js'
import { mainCalls, type MainCallParts } from '../calls/main-calls.js'

/** What the fronts beside the main thread need. */
export interface FrontsParts {
  config: Pick<Config, 'fronts' | 'shardSilenceSecs'>
  start: Omit<FrontStart, 'front'>
  log: Logger
  /** Ends the process: a front is missing, with all its connections and what it has not told. */
  end(): void
}

/** The fronts beside the main thread, which take requests on the same port (docs/adr/0045-fronts.md). */
export class Fronts {
  readonly #parts: FrontsParts
  readonly #threads: FrontThread[] = []
  #main: MainCallParts | undefined
  /** What hands them their connections. */
  #http: HttpServer | undefined
  #looks: NodeJS.Timeout | undefined
  #lost = false

  constructor(parts: FrontsParts) {
    this.#parts = parts
  }

  /** Starts them; returns when each knows what it must know to take requests. @throws Error when one does not start */
  async start(main: MainCallParts): Promise<void> {
    this.#main = main
    const { config, start } = this.#parts
    for (let front = 1; front < config.fronts; front++) {
      const thread = new FrontThread({ ...start, front }, (own) => mainCalls(main, own), {
        failed: (front, error) => this.#lose(front, error),
      })
      this.#threads.push(thread)
    }
    const isOfNode = start.lease !== undefined
    const shards = Array.from({ length: main.parts.shards.count }, (_none, shard) => shard)
    const joined = await Promise.all(shards.map((shard) => this.#join(shard, main)))
    // In a cluster, another node may have it.
    if (!isOfNode && joined.flat().includes(false))
      throw new Error('A shard ended while the fronts were started')
    // Loading its code takes a thread longer than it may be silent later.
    this.#looks = setInterval(() => this.#look(), limits.shardLookMs)
  }

  /** A shard has a new thread: all fronts are to talk to it. */
  join(shard: number): void {
    const main = this.#main
    if (main === undefined) return
    this.#join(shard, main).catch((error: unknown) => {
      // It is asked again for the next thread, unless a front has ended.
      this.#parts.log.warn({ shard, err: error }, 'a front could not talk to the new thread of a shard')
    })
  }

  /** Another node is to have a shard: resolves when none sends anything more to its thread. */
  async leaving(shard: number): Promise<void> {
    if (this.#lost) return
    await Promise.all(this.#threads.map((thread) => thread.call('leaving', shard)))
  }

  /** Which other nodes are alive: each front has links of its own to their shards. */
  async followPeers(told: PeersTold): Promise<void> {
    if (this.#lost) return
    await Promise.all(this.#threads.map((thread) => thread.call('peers', told)))
  }

  /** Resolves when each reaches all shards, or nobody waits for that any longer. */
  async untilCurrent(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.call('untilCurrent', undefined)))
  }

  /** Gives each a share of the connections. */
  async listen(http: HttpServer): Promise<void> {
    this.#http = http
    for (const thread of this.#threads) http.shareWith(await thread.call('listen', { port: http.port }))
  }

  /** What each has counted. */
  figures(): Promise<FrontFigures[]> {
    return Promise.all(
      this.#threads.map(async (thread) => ({
        ...(await thread.call('figures', undefined)),
        silentMs: thread.silentMs,
      })),
    )
  }

  /** When keys were last used at each. */
  lastUses(keyIds: readonly string[]): Promise<number[][]> {
    return Promise.all(this.#threads.map((thread) => thread.call('lastUses', keyIds)))
  }

  /** Ends streams and uploads of each, and waits so long for requests that are being answered. */
  async drain(timeMs: number): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.call('drain', { timeMs })))
  }

  /** Closes their connections and ends them. The main thread accepts none any more: it would hand it to a thread that is gone. */
  async close(): Promise<void> {
    clearInterval(this.#looks)
    this.#lost = true
    this.#http?.stopListening()
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #join(shard: number, { parts }: MainCallParts): Promise<boolean[]> {
    return Promise.all(this.#threads.map((thread) => thread.join(shard, parts.threads)))
  }

  /** Checks that each shows signs of life: the others wait for it whenever something is revoked. */
  #look(): void {
    const silenceMaxMs = this.#parts.config.shardSilenceSecs * 1_000
    for (const thread of this.#threads) {
      if (thread.look(steadyClock()) >= silenceMaxMs && silenceMaxMs > 0)
        this.#lose(thread.front, new Error('Its thread hangs'))
    }
  }

  #lose(front: number, error: Error): void {
    if (this.#lost) return
    this.#lost = true
    this.#parts.log.fatal({ front, err: error }, 'a front thread ended or hangs: this process ends itself')
    this.#parts.end()
  }
}
