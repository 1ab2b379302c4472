import { exitCodes, showUsage } from './command.js'
import { printable } from './printable.js'

/** One subcommand, in a file of its own. */
interface Subcommand {
  name: string
  usage: string
  summary: string
  run(args: string[]): Promise<number>
}

const subcommands: readonly Subcommand[] = [
  {
    name: 'init',
    usage: 'init --shards N',
    summary: 'Makes an empty cluster in the database',
    run: async (args) => (await import('./cluster-init.js')).clusterInitCommand(args),
  },
  {
    name: 'push',
    usage: 'push [--data-dir DIR]',
    summary: 'Makes a cluster of a stopped data directory, which becomes that of its first node',
    run: async (args) => (await import('./cluster-push.js')).clusterPushCommand(args),
  },
  {
    name: 'pull',
    usage: 'pull DIR',
    summary: 'Makes a data directory of its own of the cluster, which may be in use: a backup',
    run: async (args) => (await import('./cluster-pull.js')).clusterPullCommand(args),
  },
  {
    name: 'upgrade',
    usage: 'upgrade DIR',
    summary: 'Brings the cluster of an earlier version to this one, and keeps it as it was in DIR',
    run: async (args) => (await import('./cluster-upgrade.js')).clusterUpgradeCommand(args),
  },
  {
    name: 'status',
    usage: 'status',
    summary: 'Shows the nodes, the logs and the database of the cluster',
    run: async (args) => (await import('./cluster-status.js')).clusterStatusCommand(args),
  },
  {
    name: 'accept-loss',
    usage: 'accept-loss --shard N --from SEGMENT [--data-dir DIR]',
    summary: 'Has a stopped node go on although the log lacks durable segments that it knows',
    run: async (args) => (await import('./cluster-accept-loss.js')).clusterAcceptLossCommand(args),
  },
  {
    name: 'check',
    usage: 'check URL',
    summary: 'Shows whether a database can hold the log of a cluster',
    run: async (args) => (await import('./cluster-check.js')).clusterCheckCommand(args),
  },
]

const widest = Math.max(...subcommands.map(({ usage }) => usage.length))

const USAGE = `Usage: strandfast cluster SUBCOMMAND
${subcommands.map(({ usage, summary }) => `  ${usage.padEnd(widest)}  ${summary}\n`).join('')}
The database is that of SERVICE_CLUSTER_URL (but for check), the master seed that of SERVICE_MASTER_SEED or its file
(docs/CLUSTER.md).
`

/** Runs a subcommand. @returns the exit code: its own, or 78 where there is none of that name */
export async function clusterCommand([name, ...args]: string[]): Promise<number> {
  if (name === '--help' || name === '-h' || args.includes('--help') || args.includes('-h')) {
    return showUsage(USAGE, { help: true, fault: '' })
  }
  const subcommand = subcommands.find((one) => one.name === name)
  if (subcommand !== undefined) return subcommand.run(args)
  const names = subcommands.map((one) => one.name).join(', ')
  const fault = name === undefined ? `Expected one of ${names}` : `No such subcommand: ${printable(name)}`
  showUsage(USAGE, { help: false, fault })
  return exitCodes.configuration
}
