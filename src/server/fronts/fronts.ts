import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import type { DataDirectory } from '../../data/directory.js'
import type { Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { type HttpServer, unsharedBecause } from '../../front/http/server.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Config } from '../../settings/config.js'
import type { AuthServices } from '../auth.js'
import type { MainCalls, PeersTold } from '../calls/front-messages.js'
import type { Parts } from '../parts.js'
import type { Standing } from '../state.js'
import { type FrontStart, FrontThread } from './front-thread.js'

/** The settings with the number of fronts in force: one where several threads cannot share a port. */
export async function withFronts(config: Config, log: Logger): Promise<Config> {
  if (config.fronts === 1) return config
  const because = await unsharedBecause(config.httpEngine)
  if (because === undefined) return config
  log.warn({ because }, 'one front serves instead of several')
  return { ...config, fronts: 1 }
}

/** What the fronts beside the main thread need. */
interface FrontsParts {
  config: Pick<Config, 'fronts' | 'shardSilenceSecs'>
  threads: ShardThreads
  /** Answers the calls of one. */
  calls(front: () => FrontThread): Handlers<MainCalls>
  log: Logger
  /** Ends the process: a front is missing, with all its connections and what it has not told. */
  end(): void
}

interface FrontsSurroundings extends Omit<FrontsParts, 'config' | 'threads'> {
  directory: DataDirectory
  parts: Parts
  standing: Standing
  /** Absent for a server of its own. */
  lease: LeaseMemory | undefined
  /** Absent while the auth add-on is off. */
  auth: AuthServices | undefined
}

/** The fronts beside the main thread; undefined where it is the only one. */
export function makeFronts(config: Config, around: FrontsSurroundings): Fronts | undefined {
  const { directory, parts, standing, lease, auth } = around
  const { threads, connectionsMax, stageFolder, boundsMemory: bounds } = parts
  if (bounds === undefined) return undefined
  const { masterSeed, tokenEra, rootKeyDigest, shards } = directory
  return new Fronts(
    {
      config,
      masterSeed,
      tokenEra,
      rootKeyDigest,
      shards,
      connectionsMax,
      stageFolder,
      hasServerLog: parts.serverLog !== undefined,
      auth: auth && { license: auth.license, mailOn: auth.mailOn },
      standing: standing.memory,
      lease: lease?.memory,
      bounds,
    },
    { ...around, config, threads },
  )
}

/** The fronts beside the main thread, which take requests on the same port (docs/adr/0045-fronts.md). */
export class Fronts {
  readonly #start: Omit<FrontStart, 'front'>
  readonly #parts: FrontsParts
  readonly #threads: FrontThread[] = []
  /** What hands them their connections. */
  #http: HttpServer | undefined
  #looks: NodeJS.Timeout | undefined
  #lost = false

  constructor(start: Omit<FrontStart, 'front'>, parts: FrontsParts) {
    this.#start = start
    this.#parts = parts
  }

  /** Starts them; returns when each knows what it must know to take requests. @throws Error when one does not start */
  async start(): Promise<void> {
    const { config, calls } = this.#parts
    for (let front = 1; front < config.fronts; front++) {
      const failed = (front: number, error: Error) => this.#lose(front, error)
      this.#threads.push(new FrontThread({ ...this.#start, front }, calls, { failed }))
    }
    const shards = Array.from({ length: this.#start.shards }, (_none, shard) => shard)
    const joined = await Promise.all(shards.map((shard) => this.#join(shard)))
    // In a cluster, another node may have it.
    if (this.#start.lease === undefined && joined.flat().includes(false))
      throw new Error('A shard ended while the fronts were started')
    // Loading its code takes a thread longer than it may be silent later.
    this.#looks = setInterval(() => this.#look(), limits.shardLookMs)
  }

  /** A shard has a new thread: all fronts are to talk to it. */
  join(shard: number): void {
    this.#join(shard).catch((error: unknown) => {
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

  #join(shard: number): Promise<boolean[]> {
    return Promise.all(this.#threads.map((thread) => thread.join(shard, this.#parts.threads)))
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
