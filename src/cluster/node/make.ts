import { hostname } from 'node:os'
import type { DataDirectory } from '../../data/directory.js'
import { markOf } from '../../data/derived-keys.js'
import type { AlikeSettings } from '../members/settings-digest.js'
import type { Config } from '../../settings/config.js'
import type { ClusterNode, NodeParts } from './node.js'

/** This process as a node of a cluster; undefined for a server of its own. */
export async function makeClusterNode(
  config: Config,
  parts: Omit<NodeParts, 'settings' | 'address' | 'alike'>,
): Promise<ClusterNode | undefined> {
  const { cluster } = config
  if (cluster === undefined) return undefined
  // Loaded where there is a cluster: the driver of its database takes a while.
  const { ClusterNode } = await import('./node.js')
  const alike = alikeSettings(config, parts.directory)
  return new ClusterNode({ settings: cluster, address: addressOf(config), alike, ...parts })
}

/** Where clients reach this node, as far as its settings say. */
function addressOf({ cluster, host, port, tls }: Config): string {
  if (cluster?.advertise !== undefined) return cluster.advertise
  const isAny = host === '0.0.0.0' || host === '::'
  const named = isAny ? hostname() : host.includes(':') ? `[${host}]` : host
  return port === 0 ? named : `${tls === undefined ? 'http' : 'https'}://${named}:${port}`
}

/** What the answer to a request depends on, whichever node gives it. No secret is part of it. */
function alikeSettings(config: Config, { masterSeed, rootKeyDigest }: DataDirectory): AlikeSettings {
  const { auth, cluster, mail, passkeys, ingestPostgresUrl } = config
  return {
    SERVICE_AUTH_ENABLED: `${auth.enabled}`,
    SERVICE_DATA_OPEN: `${config.dataOpen}`,
    SERVICE_AGENT_ID: config.agentId,
    SERVICE_SIGNING: config.signing,
    SERVICE_CLUSTER_COPIES: `${cluster?.copies}`,
    SERVICE_RECORD_MAX_BYTES: `${config.recordBytesMax}`,
    SERVICE_GOVERNED_AUTO_APPROVE_SECS: `${config.governedAutoApproveSecs}`,
    SERVICE_LOG_INTERVAL_SECS: `${config.logIntervalSecs}`,
    SERVICE_INGEST_POSTGRES_URL: setOrNot(ingestPostgresUrl),
    SERVICE_MAIL_SMTP_URL: setOrNot(mail),
    SERVICE_WEBAUTHN_RP_ID: setOrNot(passkeys),
    SERVICE_ROOT_API_KEY: `a key marked ${markOf(rootKeyDigest, masterSeed)}`,
  }
}

function setOrNot(value: unknown): string {
  return value === undefined ? 'not set' : 'set'
}
