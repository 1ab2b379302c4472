#!/usr/bin/env node
import { setImmediate } from 'node:timers/promises'
import { version } from '../base/version.js'
import { nearestName } from '../settings/nearest-name.js'
import { exitCodes } from './command.js'
import { printable } from './printable.js'

/** One command of the command line. `run` returns the exit code. */
interface CommandEntry {
  name: string
  summary: string
  run(args: string[]): Promise<number>
}

// Each command loads only its own parts: `verify` must run where the server cannot.
const commands: readonly CommandEntry[] = [
  {
    name: 'serve',
    summary: 'Serves requests until SIGTERM, SIGINT or SIGHUP',
    run: async (args) => (await import('./serve.js')).serveCommand(args),
  },
  {
    name: 'check',
    summary: 'Checks the settings without starting',
    run: async (args) => (await import('./check.js')).checkCommand(args),
  },
  {
    name: 'doctor',
    summary: 'Examines the machine, the data directory and the running server',
    run: async (args) => (await import('./doctor.js')).doctorCommand(args),
  },
  {
    name: 'keygen',
    summary: 'Makes a seed and its public key',
    run: async (args) => (await import('./keygen.js')).keygenCommand(args),
  },
  {
    name: 'license',
    summary: 'Issues a license of the auth add-on',
    run: async (args) => (await import('./license.js')).licenseCommand(args),
  },
  {
    name: 'keys',
    summary: "Rotates the key that signs users' tokens",
    run: async (args) => (await import('./keys.js')).keysCommand(args),
  },
  {
    name: 'write',
    summary: 'Writes lines of JSON from standard input as records',
    run: async (args) => (await import('./write.js')).writeCommand(args),
  },
  {
    name: 'query',
    summary: 'Prints records that meet conditions, as lines of JSON',
    run: async (args) => (await import('./query.js')).queryCommand(args),
  },
  {
    name: 'tail',
    summary: 'Prints records as they are written, until Ctrl-C',
    run: async (args) => (await import('./tail.js')).tailCommand(args),
  },
  {
    name: 'export',
    summary: 'Saves the strand of an agent to a file',
    run: async (args) => (await import('./export.js')).exportCommand(args),
  },
  {
    name: 'import',
    summary: 'Has the running server take exports in',
    run: async (args) => (await import('./import.js')).importCommand(args),
  },
  {
    name: 'reshard',
    summary: 'Moves the data directory to another number of shards',
    run: async (args) => (await import('./reshard.js')).reshardCommand(args),
  },
  {
    name: 'verify',
    summary: 'Checks an export offline against a public key',
    run: async (args) => (await import('./verify.js')).verifyCommand(args),
  },
  {
    name: 'witness',
    summary: "Sees that a server's log of strand heads only grows",
    run: async (args) => (await import('./witness.js')).witnessCommand(args),
  },
  {
    name: 'backup',
    summary: 'Copies the data directory while the server runs, and checks the copy',
    run: async (args) => (await import('./backup.js')).backupCommand(args),
  },
  {
    name: 'restore',
    summary: 'Makes a data directory of a backup that holds',
    run: async (args) => (await import('./restore.js')).restoreCommand(args),
  },
  {
    name: 'cluster',
    summary: 'Makes and looks at a cluster over a PostgreSQL database',
    run: async (args) => (await import('./cluster.js')).clusterCommand(args),
  },
]

const usage = `Usage: strandfast COMMAND [OPTIONS]

${commands.map(({ name, summary }) => `  ${name.padEnd(8)} ${summary}\n`).join('')}
  --help     Shows this, or after a command its own usage
  --version  Shows the version

Settings are environment variables, described in docs/config.md of this package; serve, check and doctor take them as
flags too: SERVICE_DATA_DIR is --data-dir.
Exit codes: 0 fine, 1 found wrong, 66 a file cannot be read, 75 try again, 78 configuration or usage.
`

async function run([name, ...args]: string[]): Promise<number> {
  if (name === '--help' || name === '-h' || name === 'help') return print(usage)
  if (name === '--version' || name === '-v') return print(`strandfast ${version}\n`)
  const command = commands.find((known) => known.name === name)
  if (command !== undefined) return command.run(args)
  process.stderr.write(name === undefined ? usage : unknownCommand(name))
  return exitCodes.configuration
}

function unknownCommand(name: string): string {
  const nearest = nearestName(
    name,
    commands.map((known) => known.name),
  )
  const meant = nearest === undefined ? '' : ` (was ${nearest} meant?)`
  return `No such command: ${printable(name)}${meant}: strandfast --help lists them\n`
}

function print(text: string): number {
  process.stdout.write(text)
  return exitCodes.fine
}

// A reader that has enough, as `head` has, a full disk or a closed terminal ends no command, least of all the server. A
// command whose result could not be written has failed.
let unwritten: NodeJS.ErrnoException | undefined
process.stderr.on('error', () => {})
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') unwritten = error
})

// Not process.exit, which would lose output that a pipe has not taken yet.
process.exitCode = await run(process.argv.slice(2))
// A write to a file says only afterwards that it failed.
await setImmediate()
if (unwritten !== undefined) {
  process.stderr.write(`The output could not be written: ${unwritten.message}\n`)
  process.exitCode ||= exitCodes.foundWrong
}
