import { refuse, type Refusal } from '../base/errors.js'
import { steadyClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { describeFaults } from '../cluster/members/node-report.js'
import type { ServerLog } from '../dispatch/duties/server-log.js'
import { HttpMetrics } from '../front/metrics/metrics.js'
import type { FrontFigures } from '../front/metrics/request-counts.js'
import { sharedAnswer } from '../front/http/shared-answer.js'
import { freeBytesOf } from '../data/directory.js'
import type { ClusterFigures } from '../protocol/cluster-log-messages.js'
import type { LicenseAudit } from '../protocol/audit-messages.js'
import type { RouteContext } from '../front/routes/route.js'
import type { Config } from '../settings/config.js'
import { type Cluster, clusterNow, serverInfo } from './info.js'
import type { FrontParts, Parts } from './parts.js'
import type { ServerStatus } from './state.js'

/** The services that every front provides alike, backed by the main thread. */
export interface Services extends Pick<RouteContext, 'readiness' | 'server' | 'metrics' | 'metricFamilies'> {
  /** When keys were last used at any front, Unix milliseconds; 0 for never. */
  lastUses(keyIds: readonly string[]): Promise<number[]>
  /** Logs a head that is not found by scanning; absent without a server log. */
  logHead: ServerLog['logHead'] | undefined
}

interface OtherFronts {
  figures(): Promise<FrontFigures[]>
  lastUses(keyIds: readonly string[]): Promise<number[][]>
}

interface ServiceParts {
  parts: Parts
  status: ServerStatus
  /** The other fronts of this process; absent if there are none. */
  fronts: OtherFronts | undefined
  license: LicenseAudit | undefined
  hasConsole: boolean
  /** When the last backup copied the stores. */
  control: { copiedAtMs: number | undefined }
  /** Absent outside a cluster. */
  cluster: (Cluster & { figures: ClusterFigures; takeOverMs: number }) | undefined
}

/** Creates the services, in the main thread. */
export function mainServices(config: Config, around: ServiceParts): Services {
  const { parts, status, fronts, license, hasConsole, control, cluster } = around
  const { serverLog, sink, threads } = parts
  const copiedAtMs = () => control.copiedAtMs
  const metrics = new HttpMetrics({
    fronts: async () => [figuresOf(0, parts), ...((await fronts?.figures()) ?? [])],
    shards: () => threads.figures(),
    serving: () => threads.shards.serving,
    pools: () => parts.pools.map(({ figures }) => figures),
    freeBytes: () => freeBytesOf(config),
    backupCopiedAtMs: copiedAtMs,
    ...(sink !== undefined && { sink: () => sink.figures }),
    ...(cluster !== undefined && { cluster: () => ({ ...cluster.figures, problems: problemsOf(cluster) }) }),
    ...(serverLog !== undefined && { serverLog: () => serverLog.figures }),
  })
  const info = serverInfo(config, { parts, state: status, license, hasConsole, cluster, copiedAtMs })
  const sharing = { keptMs: limits.sharedAnswerMs, clock: steadyClock }
  const families = sharedAnswer(() => metrics.families(), sharing)
  return {
    // Reads only a few flags, so it is never cached.
    readiness: () => status.stoppingRefusal() ?? unready(around),
    server: sharedAnswer(info, sharing),
    metrics: sharedAnswer(() => metrics.text(), sharing),
    async metricFamilies(names) {
      const all = await families()
      if (names === undefined) return all
      const byName = new Map(all.map((family) => [family.name, family]))
      return [...new Set(names)].flatMap((name) => byName.get(name) ?? [])
    },
    async lastUses(keyIds) {
      const all = [parts.apiKeys.lastUses(keyIds), ...((await fronts?.lastUses(keyIds)) ?? [])]
      return keyIds.map((_keyId, index) => Math.max(...all.map((uses) => uses[index] ?? 0)))
    },
    logHead: serverLog === undefined ? undefined : (head) => serverLog.logHead(head),
  }
}

function problemsOf(cluster: Cluster): number {
  const { problems, differences, faults } = clusterNow(cluster)
  return problems.length + differences.length + faults.length
}

/** The counters of one front, for metrics. */
export function figuresOf(front: number, { counts, streams, shards }: FrontParts): FrontFigures {
  return { front, ...counts.figures, streams: streams.count, cache: shards.cacheFigures(), silentMs: 0 }
}

const recovering = refuse('unavailable', 'A shard is starting or recovering')
const opening =
  'A shard is opening its log in the database of the cluster, or its node cannot be reached: see the log of this server'
const withoutDatabase =
  'The database of the cluster confirms nothing: it is down, read-only, waiting for its standby, or denies the role access'

/** Adds the rejected rows of nodes, which may be the cause. */
function withFaults(detail: string, { nodes }: Pick<Cluster, 'nodes'>): Refusal {
  return refuse('unavailable', [detail, ...describeFaults(nodes.faults)].join('. '))
}

function unready({ parts, status, cluster }: ServiceParts): Refusal | undefined {
  const { shards, pools } = parts
  if (cluster?.figures.mayAnswer === false) return withFaults(withoutDatabase, cluster)
  if (cluster === undefined && !shards.serving) return recovering
  // While others take over from a failed node, this node serves all other shards, and a balancer would find
  // no better one.
  if (cluster !== undefined && shards.lastingRefusal(undefined, cluster.takeOverMs) !== undefined)
    return withFaults(opening, cluster)
  const idle = pools.find(({ figures }) => !figures.serving)
  if (idle !== undefined)
    return refuse('unavailable', `No thread of the pool "${idle.figures.name}" can be started`)
  // A node of a cluster that owns no shard writes to the disks of others.
  return status.readOnly && cluster?.figures.owned !== 0
    ? refuse('unavailable', 'The data disk is nearly full: the server is read-only')
    : undefined
}
