import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.js'
import { makeDirectory } from '../base/durable-file.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { pooledRandom } from '../base/random.js'
import type { Config } from '../settings/config.js'
import type { DataDirectory } from '../data/directory.js'
import { SealedJournal } from '../data/sealed-journal.js'
import type { LeaseMemory } from '../protocol/lease-memory.js'
import type { Readers } from '../protocol/reader-tasks.js'
import { ReaderPool } from '../dispatch/pools/reader-pool.js'
import type { ServerLog } from '../dispatch/duties/server-log.js'
import type { ShardThreads } from '../dispatch/threads/shard-threads.js'
import type { Shards } from '../dispatch/links/shards.js'
import type { SinkThread } from '../dispatch/pools/sink-thread.js'
import type { PoolFigures, PoolListener } from '../dispatch/pools/thread-pool.js'
import { ApiKeys } from '../front/http/auth/api-keys.js'
import { FrontSlices } from '../front/http/front-slices.js'
import type { Bounds } from '../front/limits/bounds.js'
import { RequestCounts } from '../front/metrics/request-counts.js'
import { StreamHub } from '../front/http/streams/hub.js'
import { Tickets, type StreamTickets, type TicketFile } from '../front/http/streams/tickets.js'
import { OpenUploads } from '../front/limits/uploads.js'

/** The parts that carry out the requests of one front, made once. */
export interface FrontParts {
  shards: Shards
  readers: Readers
  streams: StreamHub
  apiKeys: ApiKeys
  tickets: StreamTickets
  uploads: OpenUploads
  slices: FrontSlices
  /** Where imports wait for the end of their export. */
  stageFolder: string
  counts: RequestCounts
  bounds: Bounds
}

/** Those of the main thread, which is a front, with what it keeps for all fronts. */
export interface Parts extends FrontParts {
  threads: ShardThreads
  readers: ReaderPool
  tickets: Tickets
  serverLog: ServerLog | undefined
  sink: SinkThread | undefined
  /** Pools of threads that requests need. */
  pools: { figures: PoolFigures; close(): Promise<void> }[]
}

/** What making the parts of a front needs. */
interface FrontMade extends Pick<FrontParts, 'shards' | 'readers' | 'bounds' | 'stageFolder'> {
  /** The tickets, which may need to know the keys. */
  tickets(apiKeys: ApiKeys): StreamTickets
  /** The tickets of a key that was deleted open nothing; the thread that keeps them is to know. */
  revokeTickets?(principalId: string): void
}

/** Makes the parts of one front. */
export function makeFrontParts({ shards, readers, bounds, stageFolder, ...made }: FrontMade): FrontParts {
  const streams = new StreamHub(shards, bounds.streams)
  const uploads = new OpenUploads(bounds.bodies)
  const apiKeys = new ApiKeys((principalId) => {
    streams.endOf(principalId)
    uploads.endOf(principalId)
    made.revokeTickets?.(principalId)
  })
  const tickets = made.tickets(apiKeys)
  const slices = new FrontSlices()
  const counts = new RequestCounts()
  return { shards, readers, streams, apiKeys, tickets, uploads, slices, stageFolder, counts, bounds }
}

/** What making the parts of the main thread needs. */
interface Made {
  directory: DataDirectory
  threads: ShardThreads
  bounds: Bounds
  sink: SinkThread | undefined
  serverLog: ServerLog | undefined
  told: PoolListener
  /** Of a node of a cluster. */
  lease: LeaseMemory | undefined
  log: Logger
}

/** Makes them. */
export function makeParts(
  config: Config,
  { directory, threads, told, lease, bounds, log, ...more }: Made,
): Parts {
  const readers = new ReaderPool(directory.path, { told, lease })
  const tickets = new Tickets(systemClock, config.streamsPerPrincipal, ticketFile(directory, log))
  const parts = makeFrontParts({
    shards: threads.shards,
    readers,
    bounds,
    stageFolder: emptyStage(directory.path),
    tickets: () => tickets,
    revokeTickets: (principalId) => tickets.revoke(principalId),
  })
  return { ...parts, ...more, threads, readers, tickets, pools: [readers] }
}

/**
 * The file by which stream tickets outlive a restart. It opens neither after a restore nor with another root key, as what was
 * issued before is not valid then.
 */
function ticketFile({ path, masterSeed, rootKeyDigest, tokenEra }: DataDirectory, log: Logger): TicketFile {
  return new SealedJournal({
    path: join(path, 'stream-tickets'),
    masterSeed,
    place: {
      purpose: 'strandfast/stream-tickets/v1',
      owner: Buffer.concat([rootKeyDigest, Buffer.from(String(tokenEra))]),
    },
    random: pooledRandom(),
    bytesMax: limits.streamTicketsFileBytes,
    failed: (error) => log.warn({ err: error }, 'stream tickets cannot be kept for the next start'),
  })
}

/** Logs that threads of a pool do not start, or end. */
export function poolTold(log: Logger): PoolListener {
  return {
    failed: (pool, error) =>
      log.error({ pool, err: error }, 'no thread of a pool can be started: it is tried again'),
    serves: (pool) => log.warn({ pool }, 'threads of a pool can be started again'),
    ended: (pool, error) =>
      log.error({ pool, err: error }, 'a thread of a pool ended in the middle of its task'),
  }
}

/**
 * An empty folder for imports: leftover files belong to requests that have ended. The folder itself stays, since a full
 * disk may have no space for another.
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
