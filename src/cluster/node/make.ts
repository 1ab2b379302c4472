import { hash } from 'node:crypto'
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

/** Settings that may differ, because they belong to a machine or to the start of a process. */
const ownSettings = new Set([
  'SERVICE_CLUSTER_ADVERTISE',
  'SERVICE_CLUSTER_LINK_ADDRESS',
  'SERVICE_CLUSTER_LISTEN',
  'SERVICE_CLUSTER_NODE',
  'SERVICE_CLUSTER_URL',
  'SERVICE_CONNECTIONS_MAX',
  'SERVICE_CONSOLE',
  'SERVICE_DATA_DIR',
  'SERVICE_FRONTS',
  'SERVICE_HOST',
  'SERVICE_HTTP_ENGINE',
  'SERVICE_LOG_DIR',
  'SERVICE_LOG_LEVEL',
  'SERVICE_MASTER_SEED',
  'SERVICE_MASTER_SEED_FILE',
  'SERVICE_MIN_FREE_BYTES',
  'SERVICE_PORT',
  'SERVICE_RECORD_CACHE_BYTES',
  'SERVICE_SHARDS',
  'SERVICE_SHARD_SILENCE_SECS',
  'SERVICE_SHUTDOWN_TIMEOUT_SECS',
  'SERVICE_TLS_CERT_FILE',
  'SERVICE_TLS_KEY_FILE',
  'SERVICE_TRUSTED_PROXIES',
])

/** Characters of a value; the row of a node has space for all settings of this length. */
const VALUE_CHARS_MAX = 128

/**
 * All other settings that do not have their defaults: answers depend on them, whichever node gives them.
 * Secrets and long values are shown as marks, which only a holder of the master seed can compute.
 */
export function sharedSettingsOf(
  config: Config,
  { masterSeed, rootKeyDigest }: Pick<DataDirectory, 'masterSeed' | 'rootKeyDigest'>,
): SharedSettings {
  const marked = (text: string) => `marked ${markOf(hash('sha256', text, 'buffer'), masterSeed)}`
  const { auth, ingestPostgresUrl, mail, oauth } = config
  const secrets = {
    SERVICE_INGEST_POSTGRES_URL: ingestPostgresUrl,
    SERVICE_LICENSE_KEY: auth.licenseKey,
    SERVICE_MAIL_SMTP_URL: mail?.smtpUrl,
    SERVICE_OAUTH_GITHUB_CLIENT_SECRET: oauth?.github?.clientSecret,
    SERVICE_OAUTH_GOOGLE_CLIENT_SECRET: oauth?.google?.clientSecret,
  }
  const shared = config.shown
    .filter(({ name, isSet, isSecret }) => isSet && !isSecret && !ownSettings.has(name))
    .filter(({ given, byDefault }) => given !== byDefault)
    .map(({ name, given = 'set' }) => [name, given.length > VALUE_CHARS_MAX ? marked(given) : given])
  return {
    SERVICE_ROOT_API_KEY: `marked ${markOf(rootKeyDigest, masterSeed)}`,
    ...Object.fromEntries(shared),
    ...Object.fromEntries(
      Object.entries(secrets).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, marked(value)]],
      ),
    ),
  }
}
