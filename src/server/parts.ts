import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import type { ClusterFigures } from '../protocol/cluster-log-messages.js'
import type { Config } from '../settings/config.js'
import { freeBytesOf, type DataDirectory } from '../data-directory/data-directory.js'
import { ReaderPool } from '../dispatch/reader-pool.js'
import type { ServerLog } from '../dispatch/server-log.js'
import type { Shards } from '../dispatch/shards.js'
import type { SinkThread } from '../dispatch/sink-thread.js'
import type { PoolFigures, PoolListener } from '../dispatch/thread-pool.js'
import { ApiKeys } from '../http/auth/api-keys.js'
import { FrontSlices } from '../http/front-slices.js'
import { HttpMetrics } from '../http/metrics.js'
import { StreamHub } from '../http/streams/hub.js'
import { Tickets } from '../http/streams/tickets.js'
import { OpenUploads } from '../http/uploads.js'

/** The parts that carry out requests, made once. */
export interface Parts {
  shards: Shards
  readers: ReaderPool
  streams: StreamHub
  apiKeys: ApiKeys
  tickets: Tickets
  uploads: OpenUploads
  slices: FrontSlices
  /** Where imports wait for the end of their export. */
  stageFolder: string
  metrics: HttpMetrics
  serverLog: ServerLog | undefined
  /** Pools of threads that requests need. */
  pools: { figures: PoolFigures }[]
}

/** What making them needs. */
interface Made {
  directory: DataDirectory
  shards: Shards
  sink: SinkThread | undefined
  serverLog: ServerLog | undefined
  control: { copiedAtMs: number | undefined }
  told: PoolListener
  cluster: { figures: ClusterFigures } | undefined
}

/** Makes them. */
export function makeParts(config: Config, made: Made): Parts {
  const { directory, shards, sink, serverLog, control, told, cluster } = made
  const readers = new ReaderPool(directory.path, { told })
  const pools: Parts['pools'] = [readers]
  const streams = new StreamHub(shards, config.streamsPerPrincipal)
  const tickets = new Tickets(systemClock, config.streamsPerPrincipal)
  const uploads = new OpenUploads()
  const apiKeys = new ApiKeys((principalId) => {
    streams.endOf(principalId)
    uploads.endOf(principalId)
    tickets.revoke(principalId)
  })
  const metrics = new HttpMetrics({
    shards,
    streams: () => streams.count,
    pools: () => pools.map(({ figures }) => figures),
    freeBytes: () => freeBytesOf(config),
    backupCopiedAtMs: () => control.copiedAtMs,
    ...(sink !== undefined && { sink: () => sink.figures }),
    ...(cluster !== undefined && { cluster: () => cluster.figures }),
    ...(serverLog !== undefined && { serverLog: () => serverLog.figures }),
  })
  const slices = new FrontSlices()
  const stageFolder = emptyStage(directory.path)
  return {
    shards,
    readers,
    streams,
    apiKeys,
    tickets,
    uploads,
    slices,
    stageFolder,
    metrics,
    serverLog,
    pools,
  }
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

/** An empty folder for imports: leftover files belong to requests that have ended. */
function emptyStage(dataDir: string): string {
  const folder = join(dataDir, 'importing')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { mode: 0o700 })
  return folder
}
