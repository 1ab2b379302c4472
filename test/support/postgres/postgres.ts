import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type QueryResultRow } from 'pg'
import { eventually } from '../eventually.js'
import { freePort } from '../server/free-port.js'
import { postgresBinaries } from './postgres-binaries.js'

/** A PostgreSQL server for one test, with a separate port and directory. */
export interface TestPostgres {
  /** The URL for the settings of a server. */
  url: string
  /** The data directory. */
  data: string
  /** Starts the server, or starts it again, and waits until it accepts queries. */
  start(): Promise<void>
  /** Kills all of its processes with SIGKILL. */
  kill(): Promise<void>
  /** Stops the server properly (fast shutdown). */
  stop(): Promise<void>
  /** Reloads the configuration. */
  reload(): void
  /** Pauses all of its processes with SIGSTOP; `resume` continues them. */
  pause(): void
  resume(): void
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
  /** Opens a connection to a database, `postgres` by default, which stays open. */
  connect(database?: string): Promise<Client>
  /** Stops the server and removes its directory. */
  remove(): Promise<void>
}

const installed = postgresBinaries()

/** Whether tests with PostgreSQL are skipped because there is none; in CI, this is an error instead. */
export const noPostgres = installed === undefined && process.env['CI'] !== 'true'

if (noPostgres) console.warn('Skipped: no PostgreSQL')

const emptyDatabase = [
  '-U',
  'strandfast',
  '-A',
  'trust',
  '-E',
  'UTF8',
  '--no-locale',
  '--no-sync',
  '--wal-segsize=1',
]
const asStandby = ['-R', '-X', 'stream', '--no-sync', '-c', 'fast']

export interface PostgresOptions {
  /** Configuration parameters. */
  settings?: Readonly<Record<string, string>>
  /** Creates a standby of this running server. */
  standbyOf?: TestPostgres
  /** Creates a copy of this data directory, whose server is stopped or in backup mode. */
  copyOf?: string
  /** The directory of the programs. */
  binaries?: string
}

/** Creates a PostgreSQL server, which is empty unless it is a copy or a standby, and not started yet. */
export async function makePostgres(making: PostgresOptions = {}): Promise<TestPostgres> {
  const { settings = {}, standbyOf, copyOf, binaries = installed } = making
  if (binaries === undefined) throw new Error('Expected PostgreSQL to be installed')
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-postgres-'))
  const port = await freePort()
  const user = serverUser()
  if (user.uid !== undefined && user.gid !== undefined) chownSync(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  const [program, ...options] =
    copyOf !== undefined
      ? ['cp', '-a', copyOf, data]
      : standbyOf === undefined
        ? [join(binaries, 'initdb'), ...emptyDatabase, '-D', data]
        : [join(binaries, 'pg_basebackup'), '-d', standbyOf.url, ...asStandby, '-D', data]
  execFileSync(program, options, { ...user, cwd: directory, stdio: 'pipe' })
  const url = `postgres://strandfast@127.0.0.1:${port}/postgres`
  let server: ChildProcess | undefined
  const kill = async () => {
    const exited = runs(server) ? once(server, 'exit') : undefined
    signalAll(server, 'SIGKILL')
    await exited
    server = undefined
  }
  const end = async (signal: NodeJS.Signals) => {
    // Resumes paused processes, so that the server can end its children.
    signalAll(server, 'SIGCONT')
    if (runs(server) && server.kill(signal)) await once(server, 'exit')
    server = undefined
  }
  return {
    url,
    data,
    async start() {
      // The data of tests must survive the processes, but not the machine.
      const parameters = Object.entries({ fsync: 'off', ...settings }).flatMap(([name, value]) => [
        '-c',
        `${name}=${value}`,
      ])
      const args = ['-D', data, '-p', `${port}`, '-h', '127.0.0.1', '-k', '', ...parameters]
      await eventually(async () => {
        server ??= spawn(join(binaries, 'postgres'), args, { ...user, cwd: directory, stdio: 'ignore' })
        // The start fails while processes of the killed server still exist.
        if (!runs(server)) server = undefined
        return server !== undefined && (await answers(url))
      })
    },
    kill,
    stop: () => end('SIGINT'),
    reload: () => void server?.kill('SIGHUP'),
    pause: () => signalAll(server, 'SIGSTOP'),
    resume: () => signalAll(server, 'SIGCONT'),
    async query<R extends QueryResultRow>(text: string, values: unknown[] = []) {
      const client = await connected(url)
      try {
        return (await client.query<R>(text, values)).rows
      } finally {
        await client.end()
      }
    },
    connect: (database = 'postgres') => connected(url.replace(/postgres$/, database)),
    async remove() {
      await end('SIGQUIT')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  // Tests stop servers, which breaks their connections.
  client.on('error', () => {})
  await client.connect()
  return client
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await connected(url)).end()
    return true
  } catch {
    return false
  }
}

/** The user of the server processes, because PostgreSQL refuses to run as root. */
export function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const id = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** The process of a server and its children, which are in separate process groups. */
export function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return [pid, ...children.trim().split(' ').filter(Boolean).map(Number)]
}

/** Whether a server was started and has not ended. It can end while a test still knows it. */
function runs(server: ChildProcess | undefined): server is ChildProcess {
  return server !== undefined && server.exitCode === null && server.signalCode === null
}

function signalAll(server: ChildProcess | undefined, signal: NodeJS.Signals): void {
  // The number of a process that has ended may be another one's.
  for (const pid of !runs(server) || server.pid === undefined ? [] : familyOf(server.pid)) {
    try {
      process.kill(pid, signal)
    } catch {
      // The process has already ended.
    }
  }
}
