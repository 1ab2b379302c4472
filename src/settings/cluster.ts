import { hostname } from 'node:os'
import { hostUrls } from '../base/host-urls.js'
import { boolean, integer, matching } from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

/** How this process is a node of a cluster (docs/CLUSTER.md). */
export interface ClusterConfig {
  /** Addresses of the database's servers, one each, with their passwords: never logged. */
  readonly urls: readonly string[]
  readonly node: string
  /** Where clients reach this node, without a slash at the end; absent: what the address that it listens on says. */
  readonly advertise?: string
  /** Whether a database without a synchronous standby will do in production. */
  readonly unreplicated: boolean
  readonly leaseSecs: number
  /** How many nodes hold each shard. */
  readonly copies: number
  /** Where it takes links of other nodes. */
  readonly listen: HostPort
  /** Where those reach it; the host name of the machine, and the port that is listened on, when absent. */
  readonly linkAddress: HostPort | undefined
}

/** A place in the network. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** The settings of a cluster. */
export const clusterSettings = {
  clusterUrl: setting<readonly string[] | undefined>({
    name: 'SERVICE_CLUSTER_URL',
    default: undefined,
    defaultText: 'none: this server is on its own, and its data directory is what is true',
    description:
      'The PostgreSQL database that holds the logs of a cluster, with all its servers between commas: the one that takes ' +
      'writes is found among them. Made ready by `strandfast cluster init` or `push`. The master seed and the root key ' +
      'have to be given by settings then.',
    allowed: 'a URL as postgres://user:password@one:5432,two:5432/database',
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
    allowed: '1 to 63 of letters, digits, _ . and -',
    parse: matching(/^[A-Za-z0-9_.-]{1,63}$/),
  }),
  clusterAdvertise: setting<string | undefined>({
    name: 'SERVICE_CLUSTER_ADVERTISE',
    default: undefined,
    defaultText:
      'made of SERVICE_HOST and SERVICE_PORT; the host name of the machine where that is any address',
    description:
      'Where clients and browsers reach this node. Nodes that stand by tell it to everybody who asks them, while this one ' +
      'serves.',
    allowed: 'an http or https URL without a path',
    parse: parseOrigin,
  }),
  clusterUnreplicated: setting({
    name: 'SERVICE_CLUSTER_UNREPLICATED',
    default: false,
    description:
      'Whether a database without a synchronous standby will do with SERVICE_ENV=production: what it answered is lost ' +
      'with its disk.',
    allowed: 'true or false',
    parse: boolean,
  }),
  clusterLeaseSecs: setting({
    name: 'SERVICE_CLUSTER_LEASE_SECS',
    default: 10,
    unit: 'seconds',
    description:
      'How long a node may go without the database until it answers nothing any more for the shards that it owns, and how ' +
      'long another one waits for it to be silent before it takes its place.',
    allowed: 'an integer from 1 to 600',
    parse: integer(1, 600),
  }),
  clusterCopies: setting({
    name: 'SERVICE_CLUSTER_COPIES',
    default: 2,
    unit: 'nodes',
    description:
      'How many nodes hold each shard: the one that owns it, and others that keep a copy up to its log, of which one goes on at ' +
      'once when the owner is gone. Another one makes a copy from the log first. Records are in the database however many there are.',
    allowed: 'an integer from 1 to 64',
    parse: integer(1, 64),
  }),
  clusterListen: setting<HostPort>({
    name: 'SERVICE_CLUSTER_LISTEN',
    default: Object.freeze({ host: '0.0.0.0', port: 0 }),
    defaultText: '0.0.0.0:0, every address of the machine and a port that is free',
    description:
      'Where this node takes links of the other nodes, which pass requests on. They are encrypted, and take nobody without ' +
      'the master seed. Name a port where there is a firewall.',
    allowed: 'an address and a port from 0 to 65535, as 10.0.0.5:8788 or [::]:8788',
    parse: hostPort,
  }),
  clusterLinkAddress: setting<HostPort | undefined>({
    name: 'SERVICE_CLUSTER_LINK_ADDRESS',
    default: undefined,
    defaultText: 'the host name of the machine, and the port of SERVICE_CLUSTER_LISTEN',
    description: 'Where the other nodes reach this one; with port 0, that of SERVICE_CLUSTER_LISTEN.',
    allowed: 'a host and a port from 0 to 65535, as node-a.internal:8788',
    parse: hostPort,
  }),
} as const

/** Reads them. @returns undefined on a server of its own */
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

/** What a cluster needs of other settings, and what it has no use for. */
export function clusterFaults(env: Environment): SettingFault[] {
  const { clusterUrl } = clusterSettings
  if (env[clusterUrl.name] === undefined) return []
  const beside = `with ${clusterUrl.name}`
  const faults: SettingFault[] = []
  const blame = (name: string, given: string, allowed: string) => faults.push({ name, given, allowed })
  if (env['SERVICE_MASTER_SEED'] === undefined && env['SERVICE_MASTER_SEED_FILE'] === undefined)
    blame('SERVICE_MASTER_SEED', `nothing, ${beside}`, 'the master seed of the cluster, or its file')
  if (env['SERVICE_ROOT_API_KEY'] === undefined)
    blame('SERVICE_ROOT_API_KEY', `nothing, ${beside}`, 'the root key of the cluster')
  if (env['SERVICE_LOG_DIR'] !== undefined)
    blame('SERVICE_LOG_DIR', `a folder, ${beside}`, 'nothing: the logs are in the database')
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
