import { hostname } from 'node:os'
import type { DataDirectory } from '../../data/directory.js'
import { markOf } from '../../data/derived-keys.js'
import type { SharedSettings } from '../members/node-report.js'
import type { Config } from '../../settings/config.js'
import type { ClusterNode, NodeParts } from './node.js'

/** Makes this process a node of a cluster. @returns undefined if the settings name no cluster */
export async function makeClusterNode(
  config: Config,
  parts: Omit<NodeParts, 'settings' | 'address' | 'sharedSettings'>,
): Promise<ClusterNode | undefined> {
  const { cluster } = config
  if (cluster === undefined) return undefined
  // Imported only with a cluster, because the database driver takes long to load.
  const { ClusterNode } = await import('./node.js')
  const sharedSettings = sharedSettingsOf(config, parts.directory)
  return new ClusterNode({ settings: cluster, address: addressOf(config), sharedSettings, ...parts })
}

/** The address at which clients reach this node, as far as the settings say. */
function addressOf({ cluster, host, port, tls }: Config): string {
  if (cluster?.advertise !== undefined) return cluster.advertise
  const isAny = host === '0.0.0.0' || host === '::'
  const named = isAny ? hostname() : host.includes(':') ? `[${host}]` : host
  return port === 0 ? named : `${tls === undefined ? 'http' : 'https'}://${named}:${port}`
}

/** Settings on which answers depend, whichever node gives them. They contain no secrets. */
function sharedSettingsOf(config: Config, { masterSeed, rootKeyDigest }: DataDirectory): SharedSettings {
  const { auth, cluster, mail, passkeys, ingestPostgresUrl } = config
  return {
    SERVICE_AUTH_ENABLED: `${auth.enabled}`,
    SERVICE_AUTH_JWT_EXPIRY_SECS: `${auth.jwtExpirySecs}`,
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
