import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { assert } from '../base/assert.js'
import { type Clock, systemClock } from '../base/clock.js'
import { makeDirectory } from '../base/durable-file.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { pooledRandom } from '../base/random.js'
import type { DataDirectory } from '../data/directory.js'
import { readFormat, storeName } from '../data/format.js'
import { SealedJournal } from '../data/sealed-journal.js'
import { ServerLog } from '../dispatch/duties/server-log.js'
import type { Shards } from '../dispatch/links/shards.js'
import { OtlpPool } from '../otlp/pool.js'
import { ReaderPool } from '../dispatch/pools/reader-pool.js'
import { SinkThread } from '../dispatch/pools/sink-thread.js'
import type { PoolFigures, PoolListener } from '../dispatch/pools/thread-pool.js'
import type { ShardThreads } from '../dispatch/threads/shard-threads.js'
import { ApiKeys } from '../front/http/auth/api-keys.js'
import { FrontSlices } from '../front/http/front-turn.js'
import type { HttpShare } from '../front/http/server.js'
import { StreamHub } from '../front/http/streams/hub.js'
import { Tickets, type StreamTickets, type TicketFile } from '../front/http/streams/tickets.js'
import {
  type Bounds,
  type BoundSettings,
  allocateBounds,
  type BoundsMemory,
  boundsOf,
} from '../front/limits/bounds.js'
import { type ConnectionBound, connectionsMax } from '../front/limits/connections.js'
import { BodyBuffers } from '../front/http/body-buffers.js'
import { OpenTransfers } from '../front/limits/transfers.js'
import { RequestCounts } from '../front/metrics/request-counts.js'
import type { LeaseMemory } from '../protocol/lease-memory.js'
import type { OtlpDecoder } from '../otlp/tasks.js'
import type { Readers } from '../protocol/reader-tasks.js'
import type { Config } from '../settings/config.js'

/** The parts that carry out the requests of one front. */
export interface FrontParts {
  /** The time of day by which requests are judged. */
  clock: Clock
  shards: Shards
  readers: Readers
  decoder: OtlpDecoder
  streams: StreamHub
  apiKeys: ApiKeys
  tickets: StreamTickets
  transfers: OpenTransfers
  buffers: BodyBuffers
  slices: FrontSlices
  /** Where imports are staged until their export has ended. */
  stageFolder: string
  counts: RequestCounts
  bounds: Bounds
}

/** The parts of the main thread, which is a front, and those that it shares with all fronts. */
export interface Parts extends FrontParts {
  threads: ShardThreads
  readers: ReaderPool
  tickets: Tickets
  serverLog: ServerLog | undefined
  sink: SinkThread | undefined
  /** Thread pools that requests need. */
  pools: { figures: PoolFigures; close(): Promise<void> }[]
  /** The connection limit of all fronts together. */
  connectionsMax: number
  /** Memory of the limits shared by all fronts; absent if there is one front. */
  boundsMemory: BoundsMemory | undefined
}

interface FrontPartsOptions extends Pick<
  FrontParts,
  'clock' | 'shards' | 'readers' | 'decoder' | 'bounds' | 'stageFolder'
> {
  /** Creates the tickets, which may need the keys. */
  tickets(apiKeys: ApiKeys): StreamTickets
  /** Revokes the tickets of a deleted key in the thread that stores them. */
  revokeTickets?(principalId: string): void
}

export function makeFrontParts({
  clock,
  shards,
  readers,
  decoder,
  bounds,
  stageFolder,
  ...around
}: FrontPartsOptions): FrontParts {
  const streams = new StreamHub(shards, bounds.streams, clock)
  const transfers = new OpenTransfers(bounds.bodies)
  const apiKeys = new ApiKeys((principalId) => {
    streams.endPrincipal(principalId)
    transfers.endPrincipal(principalId)
    around.revokeTickets?.(principalId)
  })
  const tickets = around.tickets(apiKeys)
  const buffers = new BodyBuffers()
  const slices = new FrontSlices()
  const counts = new RequestCounts()
  const given = { clock, shards, readers, decoder, stageFolder, bounds }
  return { ...given, streams, apiKeys, tickets, transfers, buffers, slices, counts }
}

/** Ends the streams and uploads of a front, and waits until the last answer was sent or the time is over. */
export async function drain(
  { streams, transfers, counts }: FrontParts,
  http: Pick<HttpShare, 'stopListening'> | undefined,
  timeMs: number,
): Promise<void> {
  http?.stopListening()
  streams.close()
  transfers.close()
  const untilMs = performance.now() + timeMs
  while (counts.inFlight > 0 && performance.now() < untilMs) await pause(limits.drainPollMs)
}

/** The settings of the limits shared by all fronts. */
export function boundSettings(config: Config, connectionsMax: number): BoundSettings {
  const { rateLimitRps, rateLimitBurst, auth, streamsPerPrincipal } = config
  return {
    streamsPerPrincipal,
    global: { ratePerSec: rateLimitRps, burst: rateLimitBurst },
    auth: { ratePerSec: auth.rateLimitRps, burst: auth.rateLimitBurst },
    connectionsMax,
  }
}

/** The connection limit, for one front that counts its connections. */
export function connectionBound({ connections: open }: Bounds, max: number, log: Logger): ConnectionBound {
  return { open, onFull: () => log.warn({ max }, 'too many connections: further ones were closed') }
}

interface MainParts {
  directory: DataDirectory
  threads: ShardThreads
  clock: Clock
  /** The lease of a node of a cluster. */
  lease: LeaseMemory | undefined
  listener: PoolListener
  /** True while writes are refused. */
  readOnly(): boolean
  log: Logger
}

/** Creates the parts of the main thread. */
export function makeParts(config: Config, around: MainParts): Parts {
  const { clock, directory, threads, lease, listener, log } = around
  const max = connectionsMax(config.connectionsMax, directory.shards)
  const settings = boundSettings(config, max)
  const memory = config.fronts === 1 ? undefined : allocateBounds(settings)
  const readers = new ReaderPool(directory.path, { listener: listener, lease })
  const decoder = new OtlpPool(listener)
  const tickets = new Tickets(clock, config.streamsPerPrincipal, ticketFile(directory, log))
  const parts = makeFrontParts({
    clock,
    shards: threads.shards,
    readers,
    decoder,
    bounds: boundsOf(settings, memory),
    stageFolder: emptyStage(directory.path),
    tickets: () => tickets,
    revokeTickets: (principalId) => tickets.revoke(principalId),
  })
  return {
    ...parts,
    threads,
    readers,
    tickets,
    serverLog: serverLogOf(config, around),
    sink: sinkOf(config, directory, log),
    pools: [readers, decoder],
    connectionsMax: max,
    boundsMemory: memory,
  }
}

/** The log of strand heads, if it is switched on (docs/adr/0023-server-log.md). */
function serverLogOf(
  { logIntervalSecs }: Config,
  { threads, readOnly, log }: MainParts,
): ServerLog | undefined {
  if (logIntervalSecs === 0) return undefined
  return new ServerLog({
    shards: threads.shards,
    committed: (shard) => (threads.has(shard) ? threads.figures()[shard]?.records : undefined),
    intervalMs: logIntervalSecs * 1_000,
    readOnly,
    nowMs: systemClock,
    failed: (reason) => log.warn({ reason }, 'the log of strand heads fell behind'),
    forked: (strands) =>
      log.error(
        { strands },
        'strands lack records that the server log has published: their heads are no longer logged',
      ),
  })
}

/** The PostgreSQL sink, if it is configured. */
function sinkOf(
  { ingestPostgresUrl: url, logLevel }: Config,
  { path, shards }: DataDirectory,
  log: Logger,
): SinkThread | undefined {
  if (url === undefined) return undefined
  const format = readFormat(path)
  assert(typeof format === 'object', 'an open data directory has its format')
  const settings = { url, dataDir: path, shards, store: storeName(format), logLevel }
  return new SinkThread(settings, (error) => log.error({ err: error }, 'the PostgreSQL sink ended'))
}

/**
 * The file by which stream tickets survive a restart. It cannot be opened after a restore or with another
 * root key, because earlier tickets are invalid then.
 */
function ticketFile({ path, masterSeed, rootKeyDigest, tokenEra }: DataDirectory, log: Logger): TicketFile {
  return new SealedJournal({
    path: join(path, 'stream-tickets'),
    masterSeed,
    context: {
      purpose: 'strandfast/stream-tickets/v1',
      boundTo: Buffer.concat([rootKeyDigest, Buffer.from(String(tokenEra))]),
    },
    random: pooledRandom(),
    bytesMax: limits.streamTicketsFileBytes,
    failed: (error) => log.warn({ err: error }, 'could not save stream tickets for the next start'),
  })
}

/** Logs failures of the threads of pools. */
export function poolListener(log: Logger): PoolListener {
  return {
    failed: (pool, error) => log.error({ pool, err: error }, 'no thread of a pool can be started: retrying'),
    serves: (pool) => log.warn({ pool }, 'threads of a pool can be started again'),
    ended: (pool, error) => log.error({ pool, err: error }, 'a pool thread ended during a task'),
  }
}

/**
 * Empties the folder for imports: leftover files belong to requests that have ended. The folder itself is
 * reused, because a full disk may have no space for a new one.
 */
function emptyStage(dataDir: string): string {
  const folder = join(dataDir, 'importing')
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    rmSync(folder, { force: true })
    makeDirectory(folder)
  }
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  return folder
}
