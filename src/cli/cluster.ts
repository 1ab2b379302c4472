import { isHelp, showUsage } from './command.js'
import { printable } from './printable.js'

interface Subcommand {
  /** Begins with its name. */
  usage: string
  summary: string
  run(args: string[]): Promise<number>
}

const subcommands: readonly Subcommand[] = [
  {
    usage: 'init --shards N',
    summary: 'Creates an empty cluster in the database',
    run: async (args) => (await import('./cluster-init.js')).clusterInitCommand(args),
  },
  {
    usage: 'push [--data-dir DIR]',
    summary: 'Turns the data directory of a stopped server into a cluster and its first node',
    run: async (args) => (await import('./cluster-push.js')).clusterPushCommand(args),
  },
  {
    usage: 'pull DIR',
    summary: 'Copies the cluster, which may be running, into a standalone data directory: a backup',
    run: async (args) => (await import('./cluster-pull.js')).clusterPullCommand(args),
  },
  {
    usage: 'status',
    summary: 'Shows the nodes, the logs and the database of the cluster',
    run: async (args) => (await import('./cluster-status.js')).clusterStatusCommand(args),
  },
  {
    usage: 'accept-loss --shard N --from SEGMENT [--data-dir DIR]',
    summary: 'Lets a stopped node start although the log has lost durable segments',
    run: async (args) => (await import('./cluster-accept-loss.js')).clusterAcceptLossCommand(args),
  },
  {
    usage: 'check URL',
    summary: 'Checks whether a database can hold the log of a cluster',
    run: async (args) => (await import('./cluster-check.js')).clusterCheckCommand(args),
  },
]

const names = subcommands.map(({ usage }) => usage.split(' ')[0] ?? '')
const widest = Math.max(...subcommands.map(({ usage }) => usage.length))

const USAGE = `Usage: strandfast cluster SUBCOMMAND
${subcommands.map(({ usage, summary }) => `  ${usage.padEnd(widest)}  ${summary}\n`).join('')}
All but check use the database of SERVICE_CLUSTER_URL and the master seed of SERVICE_MASTER_SEED or
SERVICE_MASTER_SEED_FILE (docs/CLUSTER.md).
`

/** Runs a subcommand. @returns its exit code, or 78 if there is no subcommand of that name */
export async function clusterCommand([name, ...args]: string[]): Promise<number> {
  if (isHelp([name ?? '', ...args])) return showUsage(USAGE, { help: true, fault: '' })
  const subcommand = subcommands[names.indexOf(name ?? '')]
  if (subcommand !== undefined) return subcommand.run(args)
  const oneOf = `one of ${names.join(', ')}`
  const fault =
    name === undefined ? `Expected ${oneOf}` : `Unknown subcommand ${printable(name)}, expected ${oneOf}`
  return showUsage(USAGE, { help: false, fault })
}
