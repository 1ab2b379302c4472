#!/usr/bin/env -S node --v8-pool-size=0
import { setImmediate } from 'node:timers/promises'
import { version } from '../base/version.js'
import { nearestName } from '../settings/nearest-name.js'
import { exitCodes } from './command.js'
import type { serverCommands } from './server-commands.js'
import { printable } from './printable.js'

interface CommandEntry {
  name: string
  summary: string
  /** @returns the exit code */
  run(args: string[]): Promise<number>
}

// Each command imports only its own modules: `verify` must run on machines on which the server cannot.
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
    summary: 'Checks the machine, the data directory and the running server',
    run: async (args) => (await import('./doctor.js')).doctorCommand(args),
  },
  {
    name: 'keygen',
    summary: 'Prints a new seed and its public key',
    run: async (args) => (await import('./keygen.js')).keygenCommand(args),
  },
  {
    name: 'license',
    summary: 'Issues a license of the auth add-on',
    run: async (args) => (await import('./license.js')).licenseCommand(args),
  },
  {
    name: 'write',
    summary: 'Writes lines of JSON from standard input as records',
    run: async (args) => (await import('./write.js')).writeCommand(args),
  },
  {
    name: 'query',
    summary: 'Prints records that match conditions',
    run: async (args) => (await import('./query.js')).queryCommand(args),
  },
  {
    name: 'tail',
    summary: 'Prints records as they are written, until Ctrl-C',
    run: async (args) => (await import('./tail.js')).tailCommand(args),
  },
  {
    name: 'agents',
    summary: 'Lists agents and collections',
    run: serverCommand('agents'),
  },
  {
    name: 'status',
    summary: 'Shows the status of an agent, with its public key',
    run: serverCommand('status'),
  },
  {
    name: 'keys',
    summary: "Lists, creates and deletes API keys; rotates the key that signs users' tokens",
    async run(args) {
      const isRotation = args[0] === 'rotate'
      return isRotation
        ? (await import('./keys-rotate.js')).keysRotateCommand(args)
        : serverCommand('keys')(args)
    },
  },
  {
    name: 'proposals',
    summary: 'Lists proposals, approves and rejects them',
    run: serverCommand('proposals'),
  },
  {
    name: 'policies',
    summary: 'Prints and replaces the row policies of an agent',
    run: serverCommand('policies'),
  },
  {
    name: 'users',
    summary: 'Lists the users who sign in',
    run: serverCommand('users'),
  },
  {
    name: 'erase',
    summary: 'Permanently destroys the body of a record',
    run: serverCommand('erase'),
  },
  {
    name: 'export',
    summary: 'Saves the strand of an agent to a file',
    run: async (args) => (await import('./export.js')).exportCommand(args),
  },
  {
    name: 'import',
    summary: 'Imports exports into the running server',
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
    summary: "Checks that a server's log of strand heads only grows",
    run: async (args) => (await import('./witness.js')).witnessCommand(args),
  },
  {
    name: 'backup',
    summary: 'Copies the data directory while the server runs, and checks the copy',
    run: async (args) => (await import('./backup.js')).backupCommand(args),
  },
  {
    name: 'restore',
    summary: 'Checks a backup and makes a data directory from it',
    run: async (args) => (await import('./restore.js')).restoreCommand(args),
  },
  {
    name: 'cluster',
    summary: 'Creates, checks and shows a cluster on a PostgreSQL database',
    run: async (args) => (await import('./cluster.js')).clusterCommand(args),
  },
]

function serverCommand(name: keyof typeof serverCommands): CommandEntry['run'] {
  return async (args) => {
    const [{ runServerCommand }, { serverCommands }] = await Promise.all([
      import('./server-command.js'),
      import('./server-commands.js'),
    ])
    return runServerCommand(serverCommands[name], args)
  }
}

const widest = Math.max(...commands.map(({ name }) => name.length))

const usage = `Usage: strandfast COMMAND [OPTIONS]

${commands.map(({ name, summary }) => `  ${name.padEnd(widest)} ${summary}\n`).join('')}
  ${'--help'.padEnd(widest)} Shows this help, or the usage of a command
  ${'--version'.padEnd(widest)} Shows the version

Settings are environment variables, described in docs/config.md of this package; serve, check and doctor also take them as
flags: SERVICE_DATA_DIR is --data-dir.
Exit codes: 0 success, 1 failure, 66 a file cannot be read, 75 try again, 78 wrong configuration or usage.
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
  const hint = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
  return `Unknown command ${printable(name)}${hint}: see strandfast --help\n`
}

function print(text: string): number {
  process.stdout.write(text)
  return exitCodes.fine
}

// A closed pipe, as after `| head`, a closed terminal or a full disk must not end a command, least of all the
// server. A command whose output could not be written has failed, except into a closed pipe.
let outputError: NodeJS.ErrnoException | undefined
process.stderr.on('error', () => {})
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') outputError = error
})

// process.exit would lose output that is still buffered for a pipe.
process.exitCode = await run(process.argv.slice(2))
// A failed write to a file is reported only in a later turn of the event loop.
await setImmediate()
if (outputError !== undefined) {
  process.stderr.write(`The output could not be written: ${outputError.message}\n`)
  process.exitCode ||= exitCodes.foundWrong
}
