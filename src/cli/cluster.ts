import { exitCodes } from './exit-codes.js'
import { showUsage } from './read-options.js'
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
    name: 'check',
    usage: 'check URL',
    summary: 'Shows whether a database can hold the log of a cluster',
    run: async (args) => (await import('./cluster-check.js')).clusterCheckCommand(args),
  },
]

const widest = Math.max(...subcommands.map(({ usage }) => usage.length))

const USAGE = `Usage: strandfast cluster SUBCOMMAND
${subcommands.map(({ usage, summary }) => `  ${usage.padEnd(widest)}  ${summary}\n`).join('')}`

/** Runs a subcommand. @returns the exit code: its own, or 78 where there is none of that name */
export async function clusterCommand([name, ...args]: string[]): Promise<number> {
  if (name === '--help' || name === '-h') return showUsage(USAGE, { help: true, fault: '' })
  const subcommand = subcommands.find((one) => one.name === name)
  if (subcommand !== undefined) return subcommand.run(args)
  const names = subcommands.map((one) => one.name).join(', ')
  const fault = name === undefined ? `Expected one of ${names}` : `No such subcommand: ${printable(name)}`
  showUsage(USAGE, { help: false, fault })
  return exitCodes.configuration
}
