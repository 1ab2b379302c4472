import { systemClock } from '../base/clock.js'
import { version } from '../base/version.js'
import type { Membership } from '../cluster/members/membership.js'
import { describeFaults, differences, decodeReport, nodeProblems } from '../cluster/members/node-report.js'
import type { LicenseAudit } from '../protocol/audit-messages.js'
import type { Config } from '../settings/config.js'
import { openModes } from '../settings/open-modes.js'
import type { ServerInfo } from '../wire/server.js'
import type { Parts } from './parts.js'
import type { ServerState } from './state.js'

/** This node and the nodes of its cluster, as it knows them. */
export interface Cluster {
  name: string
  nodes: Pick<Membership, 'members' | 'stopped' | 'faults' | 'cutOffMs'>
}

export interface InfoSources {
  parts: Pick<Parts, 'threads' | 'clock'>
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
  const { threads, clock } = sources.parts
  return () => ({
    version,
    node: process.versions.node,
    started_at_ms: startedAtMs,
    read_only: sources.state.readOnly,
    serving: threads.shards.serving,
    shards: threads.figures().map(({ agents, records, deaths }) => ({ agents, records, deaths })),
    features,
    open_modes: openModes(config),
    license: licenseNow(sources.license, clock()),
    last_backup_copy_at_ms: sources.copiedAtMs() ?? null,
    cluster: sources.cluster === undefined ? null : clusterNow(sources.cluster),
    settings,
  })
}

/** The cluster as this node knows it, and what is wrong with it. */
export function clusterNow({ name, nodes }: Cluster): NonNullable<ServerInfo['cluster']> {
  const { members: alive, stopped, faults, cutOffMs } = nodes
  const members = alive.toSorted((one, other) => (one.node < other.node ? -1 : 1))
  const since = cutOffMs === undefined ? [] : [cutOff(name, cutOffMs)]
  return {
    node: name,
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
    stopped: stopped.map(({ node, address }) => ({ node, address })),
    problems: [...since, ...nodeProblems(members)],
    differences: differences(members),
    faults: describeFaults(faults),
  }
}

function cutOff(node: string, forMs: number): string {
  const secs = Math.floor(forMs / 1_000)
  return `The database confirms no heartbeats of the node ${node}: what it shows of the nodes is ${secs} s old`
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
