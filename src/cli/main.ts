#!/usr/bin/env -S node --v8-pool-size=0
import { setImmediate } from 'node:timers/promises'
import { version } from '../base/version.js'
import { nearestName } from '../settings/nearest-name.js'
import { exitCodes } from './command.js'
import type { serverCommands } from './server-commands.js'
import { printable } from './printable.js'

/** @returns the exit code */
type Run = (args: string[]) => Promise<number>

// Each command imports only its own modules: `verify` must run on machines on which the server cannot.
const commands: Readonly<Record<string, readonly [summary: string, load: () => Promise<Run> | Run]>> = {
  serve: [
    'Serves requests until SIGTERM, SIGINT or SIGHUP',
    async () => (await import('./serve.js')).serveCommand,
  ],
  check: ['Checks the settings without starting', async () => (await import('./check.js')).checkCommand],
  doctor: [
    'Checks the machine, the data directory and the running server',
    async () => (await import('./doctor.js')).doctorCommand,
  ],
  keygen: ['Prints a new seed and its public key', async () => (await import('./keygen.js')).keygenCommand],
  license: ['Issues a license of the auth add-on', async () => (await import('./license.js')).licenseCommand],
  write: [
    'Writes lines of JSON from standard input as records',
    async () => (await import('./write.js')).writeCommand,
  ],
  query: ['Prints records that match conditions', async () => (await import('./query.js')).queryCommand],
  tail: [
    'Prints records as they are written, until Ctrl-C',
    async () => (await import('./tail.js')).tailCommand,
  ],
  agents: ['Lists agents and collections', () => serverCommand('agents')],
  status: ['Shows the status of an agent, with its public key', () => serverCommand('status')],
  keys: ["Lists, creates and deletes API keys; rotates the key that signs users' tokens", () => keysCommand],
  proposals: ['Lists proposals, approves and rejects them', () => serverCommand('proposals')],
  policies: ['Prints and replaces the row policies of an agent', () => serverCommand('policies')],
  users: ['Lists the users who sign in', () => serverCommand('users')],
  erase: ['Permanently destroys the body of a record', () => serverCommand('erase')],
  export: ['Saves the strand of an agent to a file', async () => (await import('./export.js')).exportCommand],
  import: [
    'Imports exports into the running server',
    async () => (await import('./import.js')).importCommand,
  ],
  reshard: [
    'Moves the data directory to another number of shards',
    async () => (await import('./reshard.js')).reshardCommand,
  ],
  verify: [
    'Checks an export offline against a public key',
    async () => (await import('./verify.js')).verifyCommand,
  ],
  witness: [
    "Checks that a server's log of strand heads only grows",
    async () => (await import('./witness.js')).witnessCommand,
  ],
  backup: [
    'Copies the data directory while the server runs, and checks the copy',
    async () => (await import('./backup.js')).backupCommand,
  ],
  restore: [
    'Checks a backup and makes a data directory from it',
    async () => (await import('./restore.js')).restoreCommand,
  ],
  cluster: [
    'Creates, checks and shows a cluster on a PostgreSQL database',
    async () => (await import('./cluster.js')).clusterCommand,
  ],
}

async function keysCommand(args: string[]): Promise<number> {
  if (args[0] !== 'rotate') return serverCommand('keys')(args)
  return (await import('./keys-rotate.js')).keysRotateCommand(args)
}

function serverCommand(name: keyof typeof serverCommands): Run {
  return async (args) => {
    const [{ runServerCommand }, { serverCommands }] = await Promise.all([
      import('./server-command.js'),
      import('./server-commands.js'),
    ])
    return runServerCommand(serverCommands[name], args)
  }
}

const names = Object.keys(commands)
const widest = Math.max(...names.map((name) => name.length))

const usage = `Usage: strandfast COMMAND [OPTIONS]

${Object.entries(commands)
  .map(([name, [summary]]) => `  ${name.padEnd(widest)} ${summary}\n`)
  .join('')}
  ${'--help'.padEnd(widest)} Shows this help, or the usage of a command
  ${'--version'.padEnd(widest)} Shows the version

Settings are environment variables, described in docs/config.md of this package; serve, check and doctor also take them as
flags: SERVICE_DATA_DIR is --data-dir.
Exit codes: 0 success, 1 failure, 66 a file cannot be read, 75 try again, 78 wrong configuration or usage.
`

async function run([name, ...args]: string[]): Promise<number> {
  if (name === '--help' || name === '-h' || name === 'help') return print(usage)
  if (name === '--version' || name === '-v') return print(`strandfast ${version}\n`)
  const [, load] = Object.entries(commands).find(([known]) => known === name)?.[1] ?? []
  if (load !== undefined) return (await load())(args)
  process.stderr.write(name === undefined ? usage : unknownCommand(name))
  return exitCodes.configuration
}

function unknownCommand(name: string): string {
  const nearest = nearestName(name, names)
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
