import { hostname } from 'node:os'
import { hostUrls } from '../base/host-urls.js'
import { boolean, integer, matching } from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

/** The settings of a node of a cluster (docs/CLUSTER.md). */
export interface ClusterConfig {
  /** URLs of the database servers, with passwords; never logged. */
  readonly urls: readonly string[]
  readonly node: string
  /**
   * The address of this node for clients, without a slash at the end; derived from the listen address if
   * absent.
   */
  readonly advertise?: string
  /** Whether a database without a synchronous standby is accepted in production. */
  readonly unreplicated: boolean
  readonly leaseSecs: number
  /** The number of nodes that have each shard. */
  readonly copies: number
  /** The listen address for links of other nodes. */
  readonly listen: HostPort
  /** The address of this node for links; if absent, the host name of the machine and the listen port. */
  readonly linkAddress: HostPort | undefined
}

/** A network address. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

export const clusterSettings = {
  clusterUrl: setting<readonly string[] | undefined>({
    name: 'SERVICE_CLUSTER_URL',
    default: undefined,
    defaultText: 'none: this server is not part of a cluster, and its data directory is authoritative',
    description:
      'The PostgreSQL database that stores the logs of a cluster. List all of its servers, separated by commas: the node ' +
      'finds the primary. `strandfast cluster init` or `push` creates the tables. A cluster also needs the settings of ' +
      'the master seed and the root key.',
    allowed: 'a URL such as postgres://user:password@one:5432,two:5432/database',
    secret: true,
    parse: (text) => {
      const urls = hostUrls(text)
      return urls.length === 0 ? undefined : Object.freeze(urls)
    },
  }),
  clusterNode: setting<string | undefined>({
    name: 'SERVICE_CLUSTER_NODE',
    default: undefined,
    defaultText: 'the host name of the machine',
    description: 'The name of this node in its cluster.',
    allowed: '1 to 63 letters, digits, _ . and -',
    parse: matching(/^[A-Za-z0-9_.-]{1,63}$/),
  }),
  clusterAdvertise: setting<string | undefined>({
    name: 'SERVICE_CLUSTER_ADVERTISE',
    default: undefined,
    defaultText:
      'derived from SERVICE_HOST and SERVICE_PORT, with the host name of the machine for a wildcard address',
    description:
      'The address of this node for clients and browsers. Other nodes report it to clients while this node is active.',
    allowed: 'an http or https URL without a path',
    parse: parseOrigin,
  }),
  clusterUnreplicated: setting({
    name: 'SERVICE_CLUSTER_UNREPLICATED',
    default: false,
    description:
      'Whether a database without a synchronous standby is accepted with SERVICE_ENV=production: confirmed writes are ' +
      'lost if its disk fails.',
    allowed: 'true or false',
    parse: boolean,
  }),
  clusterLeaseSecs: setting({
    name: 'SERVICE_CLUSTER_LEASE_SECS',
    default: 10,
    unit: 'seconds',
    description:
      'How long a node without a connection to the database continues to serve its shards, and how long another node waits ' +
      'without a heartbeat before it takes over.',
    allowed: 'an integer from 1 to 600',
    parse: integer(1, 600),
  }),
  clusterCopies: setting({
    name: 'SERVICE_CLUSTER_COPIES',
    default: 2,
    unit: 'nodes',
    description:
      'The number of nodes with a copy of each shard: its owner and followers, one of which takes over immediately if the ' +
      'owner fails. Any other node first builds a copy from the log. All records are in the database, regardless of copies.',
    allowed: 'an integer from 1 to 64',
    parse: integer(1, 64),
  }),
  clusterListen: setting<HostPort>({
    name: 'SERVICE_CLUSTER_LISTEN',
    default: Object.freeze({ host: '0.0.0.0', port: 0 }),
    defaultText: '0.0.0.0:0, all addresses of the machine and any free port',
    description:
      'The listen address for links of other nodes, which forward requests. Links are encrypted, and authenticated with the ' +
      'master seed. Set a fixed port if there is a firewall.',
    allowed: 'an address and a port from 0 to 65535, such as 10.0.0.5:8788 or [::]:8788',
    parse: hostPort,
  }),
  clusterLinkAddress: setting<HostPort | undefined>({
    name: 'SERVICE_CLUSTER_LINK_ADDRESS',
    default: undefined,
    defaultText: 'the host name of the machine, and the port of SERVICE_CLUSTER_LISTEN',
    description:
      'The address of this node for links of other nodes; port 0 is the port of SERVICE_CLUSTER_LISTEN.',
    allowed: 'a host and a port from 0 to 65535, such as node-a.internal:8788',
    parse: hostPort,
  }),
} as const

/** Reads the settings of a cluster; undefined on a server without a cluster. */
export function readCluster(value: ValueOf): ClusterConfig | undefined {
  const values = valuesOf(clusterSettings, value)
  const { clusterUrl: urls, clusterAdvertise: advertise } = values
  if (urls === undefined) return undefined
  return Object.freeze({
    urls,
    node: values.clusterNode ?? machineName(),
    ...(advertise !== undefined && { advertise }),
    unreplicated: values.clusterUnreplicated,
    leaseSecs: values.clusterLeaseSecs,
    copies: values.clusterCopies,
    listen: values.clusterListen,
    linkAddress: values.clusterLinkAddress,
  })
}

/** Faults of other settings that a cluster requires or excludes. */
export function clusterFaults(env: Environment): SettingFault[] {
  const { clusterUrl } = clusterSettings
  if (env[clusterUrl.name] === undefined) return []
  const inCluster = `with ${clusterUrl.name}`
  const faults: SettingFault[] = []
  const addFault = (name: string, given: string, allowed: string) => faults.push({ name, given, allowed })
  if (env['SERVICE_MASTER_SEED'] === undefined && env['SERVICE_MASTER_SEED_FILE'] === undefined)
    addFault('SERVICE_MASTER_SEED', `nothing, ${inCluster}`, 'the master seed of the cluster, or its file')
  if (env['SERVICE_ROOT_API_KEY'] === undefined)
    addFault('SERVICE_ROOT_API_KEY', `nothing, ${inCluster}`, 'the root key of the cluster')
  if (env['SERVICE_LOG_DIR'] !== undefined)
    addFault('SERVICE_LOG_DIR', `a folder, ${inCluster}`, 'nothing: the logs are in the database')
  return faults
}

function hostPort(text: string): HostPort | undefined {
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):(\d{1,5})$/.exec(text) ?? []
  if (host === '' || Number(port) > 65_535) return undefined
  return Object.freeze({ host: host.replaceAll(/[[\]]/g, ''), port: Number(port) })
}

function parseOrigin(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined
  const { origin, protocol, href } = new URL(text)
  const isOrigin = (protocol === 'http:' || protocol === 'https:') && href === `${origin}/`
  return isOrigin ? origin : undefined
}

function machineName(): string {
  return (
    hostname()
      .replaceAll(/[^A-Za-z0-9_.-]/g, '-')
      .slice(0, 63) || 'node'
  )
}
