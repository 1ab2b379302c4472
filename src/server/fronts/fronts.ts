import { steadyClock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'
import type { Logger } from '../../base/log.js'
import type { ClusterNode } from '../../cluster/node/node.js'
import type { DataDirectory } from '../../data/directory.js'
import type { Handlers } from '../../dispatch/calls.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import { type HttpServer, unsharedReason } from '../../front/http/server.js'
import type { FrontFigures } from '../../front/metrics/request-counts.js'
import type { ConfirmedClock } from '../../protocol/confirmed-clock.js'
import type { LeaseMemory } from '../../protocol/lease-memory.js'
import type { Config } from '../../settings/config.js'
import type { AuthServices } from '../auth.js'
import type { MainCalls } from '../calls/front-messages.js'
import type { Parts } from '../parts.js'
import type { ServerStatus } from '../state.js'
import { type FrontStart, FrontThread } from './front-thread.js'

/** The settings with the number of fronts in force: one, if threads cannot share a port. */
export async function withFronts(config: Config, log: Logger): Promise<Config> {
  if (config.fronts === 1) return config
  const reason = await unsharedReason(config.httpEngine)
  if (reason === undefined) return config
  log.warn({ reason }, 'front threads cannot share a port: starting only one')
  return { ...config, fronts: 1 }
}

/** Dependencies of the additional fronts. */
interface FrontsParts {
  config: Pick<Config, 'fronts' | 'shardSilenceSecs'>
  threads: ShardThreads
  calls(front: () => FrontThread): Handlers<MainCalls>
  log: Logger
  /** Ends the process: a front has failed, with all its connections and unprocessed notices. */
  end(): void
}

interface MakeFrontsParts extends Omit<FrontsParts, 'config' | 'threads'> {
  directory: DataDirectory
  parts: Parts
  status: ServerStatus
  /** Absent outside a cluster. */
  lease: LeaseMemory | undefined
  clock: ConfirmedClock | undefined
  /** Absent while the auth add-on is off. */
  auth: AuthServices | undefined
}

/** Creates the additional fronts; undefined if the main thread is the only front. */
export function makeFronts(config: Config, around: MakeFrontsParts): Fronts | undefined {
  const { directory, parts, status, lease, clock, auth } = around
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
      status: status.memory,
      lease: lease?.memory,
      clock: clock?.memory,
      bounds,
    },
    { ...around, config, threads },
  )
}

/** The fronts besides the main thread; all accept requests on the same port (docs/adr/0045-fronts.md). */
export class Fronts {
  readonly #start: Omit<FrontStart, 'front'>
  readonly #parts: FrontsParts
  readonly #threads: FrontThread[] = []
  /** Distributes connections to them. */
  #http: HttpServer | undefined
  #looks: NodeJS.Timeout | undefined
  #lost = false

  constructor(start: Omit<FrontStart, 'front'>, parts: FrontsParts) {
    this.#start = start
    this.#parts = parts
  }

  /**
   * Starts the fronts; resolves when each has loaded the state of all shards.
   * @throws Error if a front does not start
   */
  async start(): Promise<void> {
    const { config, calls } = this.#parts
    for (let front = 1; front < config.fronts; front++) {
      const failed = (front: number, error: Error) => this.#lose(front, error)
      this.#threads.push(new FrontThread({ ...this.#start, front }, calls, { failed }))
    }
    const shards = Array.from({ length: this.#start.shards }, (_none, shard) => shard)
    const joined = await Promise.all(shards.map((shard) => this.#join(shard)))
    // In a cluster, another node may own the shard.
    if (this.#start.lease === undefined && joined.flat().includes(false))
      throw new Error('A shard ended while the fronts were starting')
    // Begins after the start, because loading code takes a thread longer than a heartbeat may be missing
    // later.
    this.#looks = setInterval(() => this.#look(), limits.shardCheckMs)
  }

  /** Joins all fronts to the new thread of a shard. */
  join(shard: number): void {
    this.#join(shard).catch((error: unknown) => {
      // The next thread of the shard triggers another join, unless a front has ended.
      this.#parts.log.warn({ shard, err: error }, 'could not connect a front to a restarted shard thread')
    })
  }

  /** Resolves when no front sends to the thread of a shard any more, because another node gets the shard. */
  async leaving(shard: number): Promise<void> {
    if (this.#lost) return
    await Promise.all(this.#threads.map((thread) => thread.call('leaving', shard)))
  }

  /**
   * Passes the other live nodes to the fronts; each front has its own links to them. Resolves when each front
   * reaches all shards, or its time limit has passed.
   */
  async followPeers(cluster: ClusterNode): Promise<void> {
    const failed = (error: unknown) =>
      this.#parts.log.warn({ err: error }, 'could not notify a front of the other nodes')
    cluster.followPeers((notices) => {
      if (this.#lost) return
      void Promise.all(this.#threads.map((thread) => thread.call('peers', notices))).catch(failed)
    })
    await Promise.all(this.#threads.map((thread) => thread.call('untilCurrent', undefined)))
  }

  /** Gives each front a share of the connections. */
  async listen(http: HttpServer): Promise<void> {
    this.#http = http
    for (const thread of this.#threads) http.shareWith(await thread.call('listen', { port: http.port }))
  }

  figures(): Promise<FrontFigures[]> {
    return Promise.all(
      this.#threads.map(async (thread) => ({
        ...(await thread.call('figures', undefined)),
        silentMs: thread.silentMs,
      })),
    )
  }

  /** When keys were last used, for each front. */
  lastUses(keyIds: readonly string[]): Promise<number[][]> {
    return Promise.all(this.#threads.map((thread) => thread.call('lastUses', keyIds)))
  }

  /** Ends the streams and uploads of each front, and waits up to `timeMs` for pending answers. */
  async drain(timeMs: number): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.call('drain', { timeMs })))
  }

  /**
   * Closes the connections of all fronts and ends them. The main thread stops accepting first, since it would
   * pass a connection to an ended thread.
   */
  async close(): Promise<void> {
    clearInterval(this.#looks)
    this.#lost = true
    this.#http?.stopListening()
    await Promise.all(this.#threads.map((thread) => thread.close()))
  }

  #join(shard: number): Promise<boolean[]> {
    return Promise.all(this.#threads.map((thread) => thread.join(shard, this.#parts.threads)))
  }

  /** Checks the heartbeat of each front: whenever something is revoked, the others wait for it. */
  #look(): void {
    const stallMaxMs = this.#parts.config.shardSilenceSecs * 1_000
    for (const thread of this.#threads) {
      if (thread.look(steadyClock()) >= stallMaxMs && stallMaxMs > 0)
        this.#lose(thread.front, new Error('Its thread hangs'))
    }
  }

  #lose(front: number, error: Error): void {
    if (this.#lost) return
    this.#lost = true
    this.#parts.log.fatal({ front, err: error }, 'a front thread ended or hangs: the process exits')
    this.#parts.end()
  }
}
