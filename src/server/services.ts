import { refuse, type Refusal } from '../base/errors.js'
import { steadyClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { describeFaults } from '../cluster/members/settings-digest.js'
import type { ServerLog } from '../dispatch/duties/server-log.js'
import { HttpMetrics } from '../front/metrics/metrics.js'
import type { FrontFigures } from '../front/metrics/request-counts.js'
import { sharedAnswer } from '../front/http/shared-answer.js'
import { freeBytesOf } from '../data/directory.js'
import type { ClusterFigures } from '../protocol/cluster-log-messages.js'
import type { LicenseTold } from '../protocol/audit-messages.js'
import type { RouteContext } from '../front/routes/route.js'
import type { Config } from '../settings/config.js'
import { type Cluster, serverInfo } from './info.js'
import type { FrontParts, Parts } from './parts.js'
import type { Standing } from './state.js'

/** What every front answers in the same way, from what the main thread keeps. */
export interface Services extends Pick<RouteContext, 'readiness' | 'server' | 'metrics' | 'metricFamilies'> {
  /** When keys were last used at any front, Unix milliseconds; 0 for never. */
  lastUses(keyIds: readonly string[]): Promise<number[]>
  /** Writes a head that no look finds to the server log; absent without one. */
  tellHead: ServerLog['tell'] | undefined
}

/** What the other fronts are asked. */
interface OtherFronts {
  figures(): Promise<FrontFigures[]>
  lastUses(keyIds: readonly string[]): Promise<number[][]>
}

/** What these services need. */
interface ServiceParts {
  parts: Parts
  standing: Standing
  /** The other fronts of this process; absent where there are none. */
  fronts: OtherFronts | undefined
  license: LicenseTold | undefined
  hasConsole: boolean
  /** When the stores were last copied for a backup. */
  control: { copiedAtMs: number | undefined }
  /** Absent for a server of its own. */
  cluster: (Cluster & { figures: ClusterFigures; takeOverMs: number }) | undefined
}

/** The services, in the main thread. */
export function mainServices(config: Config, around: ServiceParts): Services {
  const { parts, standing, fronts, license, hasConsole, control, cluster } = around
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
    ...(cluster !== undefined && { cluster: () => cluster.figures }),
    ...(serverLog !== undefined && { serverLog: () => serverLog.figures }),
  })
  const info = serverInfo(config, { parts, state: standing, license, hasConsole, cluster, copiedAtMs })
  const kept = { keptMs: limits.sharedAnswerMs, clock: steadyClock }
  const families = sharedAnswer(() => metrics.families(), kept)
  return {
    // Looks at a few flags only, and is never out of date.
    readiness: () => standing.stoppingRefusal() ?? unready(around),
    server: sharedAnswer(info, kept),
    metrics: sharedAnswer(() => metrics.text(), kept),
    async metricFamilies(names) {
      const all = await families()
      if (names === undefined) return all
      const byName = new Map(all.map((family) => [family.name, family]))
      return [...new Set(names)].flatMap((name) => byName.get(name) ?? [])
    },
    async lastUses(keyIds) {
      const all = [parts.apiKeys.lastUses(keyIds), ...((await fronts?.lastUses(keyIds)) ?? [])]
      return keyIds.map((_keyId, place) => Math.max(...all.map((uses) => uses[place] ?? 0)))
    },
    tellHead: serverLog === undefined ? undefined : (head) => serverLog.tell(head),
  }
}

/** What one front has counted, for metrics. */
export function figuresOf(front: number, { counts, streams, shards }: FrontParts): FrontFigures {
  return { front, ...counts.figures, streams: streams.count, cache: shards.cacheFigures(), silentMs: 0 }
}

const recovering = refuse('unavailable', 'A shard is starting or recovering')
const opening =
  'A shard is opening its log in the database of the cluster, or its node cannot be reached: the log of this server says what keeps it'
const withoutDatabase =
  'The database of the cluster confirms nothing: it is away, only reads, waits for its standby, or lets the role do nothing'

/** Rows that are not believed may be why. */
function becauseOf(detail: string, { faults }: Pick<Cluster, 'faults'>): Refusal {
  return refuse('unavailable', [detail, ...describeFaults(faults)].join('. '))
}

function unready({ parts, standing, cluster }: ServiceParts): Refusal | undefined {
  const { shards, pools } = parts
  if (cluster?.figures.mayAnswer === false) return becauseOf(withoutDatabase, cluster)
  if (cluster === undefined && !shards.serving) return recovering
  // While others take over from a node that died, this one answers for all other shards, and no balancer would find a better one.
  if (cluster !== undefined && shards.lastingRefusal(undefined, cluster.takeOverMs) !== undefined)
    return becauseOf(opening, cluster)
  const idle = pools.find(({ figures }) => !figures.serving)
  if (idle !== undefined)
    return refuse('unavailable', `The pool of ${idle.figures.name} has no thread: none can be started`)
  return standing.readOnly
    ? refuse('unavailable', 'The data disk is nearly full: the server is read-only')
    : undefined
}
