import { systemClock } from '../base/clock.js'
import { version } from '../base/version.js'
import type { Member, RowFault } from '../cluster/members/member.js'
import { describeFaults, differences, decodeReport, nodeProblems } from '../cluster/members/node-report.js'
import type { LicenseAudit } from '../protocol/audit-messages.js'
import type { Config } from '../settings/config.js'
import { openModes } from '../settings/open-modes.js'
import type { ServerInfo } from '../wire/server.js'
import type { Parts } from './parts.js'
import type { ServerState } from './state.js'

/** This node and the live nodes of its cluster, as it knows them. */
export interface Cluster {
  name: string
  members: readonly Member[]
  /** Rejected rows of nodes in the database. */
  faults: readonly RowFault[]
}

/** Sources of the server information. */
export interface InfoSources {
  parts: Pick<Parts, 'threads'>
  state: Pick<ServerState, 'readOnly'>
  /** The license at the start; absent while the auth add-on is off. */
  license: LicenseAudit | undefined
  hasConsole: boolean
  /** Absent outside a cluster. */
  cluster: Cluster | undefined
  /** When the last backup copied the stores, Unix milliseconds. */
  copiedAtMs(): number | undefined
}

/**
 * Creates the function that answers GET /v1/server. It uses no settings other than those that may be shown.
 */
export function serverInfo(config: Config, sources: InfoSources): () => ServerInfo {
  const startedAtMs = systemClock()
  const settings = config.shown.map(({ name, given, byDefault, isSecret, isSet }) => ({
    name,
    value: given ?? null,
    default: byDefault,
    is_secret: isSecret,
    is_set: isSet,
  }))
  const features = featuresOf(config, sources.hasConsole)
  const { threads } = sources.parts
  return () => ({
    version,
    node: process.versions.node,
    started_at_ms: startedAtMs,
    read_only: sources.state.readOnly,
    serving: threads.shards.serving,
    shards: threads.figures().map(({ agents, records, deaths }) => ({ agents, records, deaths })),
    features,
    open_modes: openModes(config),
    license: licenseNow(sources.license, systemClock()),
    last_backup_copy_at_ms: sources.copiedAtMs() ?? null,
    cluster: clusterNow(sources.cluster),
    settings,
  })
}

function clusterNow(cluster: Cluster | undefined): ServerInfo['cluster'] {
  if (cluster === undefined) return null
  const members = cluster.members.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  return {
    node: cluster.name,
    members: members.map((member) => {
      const { version, servesSinceMs, owned = [], held = [], lagSecs } = decodeReport(member)
      const { node, address } = member
      return {
        node,
        address,
        version,
        serves_since_ms: servesSinceMs ?? null,
        owned_shards: [...owned],
        held_shards: [...held],
        lag_secs: lagSecs ?? null,
      }
    }),
    problems: nodeProblems(members),
    differences: differences(members),
    faults: describeFaults(cluster.faults),
  }
}

function featuresOf(config: Config, hasConsole: boolean): ServerInfo['features'] {
  const { auth, mail, oauth, passkeys, ingestPostgresUrl, logIntervalSecs, tls } = config
  return {
    auth: auth.enabled,
    mail: mail !== undefined,
    oauth_google: oauth?.google !== undefined,
    oauth_github: oauth?.github !== undefined,
    passkeys: passkeys !== undefined,
    postgres: ingestPostgresUrl !== undefined,
    server_log: logIntervalSecs > 0,
    tls: tls !== undefined,
    console: hasConsole,
  }
}

/** The license now: one that was valid at the start may have expired. */
function licenseNow(license: LicenseAudit | undefined, nowMs: number): ServerInfo['license'] {
  if (license === undefined) return null
  const expired =
    license.state === 'valid' && license.expires_at_ms !== null && license.expires_at_ms <= nowMs
  return { ...license, state: expired ? 'expired' : license.state }
}
