import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, type QueryResultRow } from 'pg'
import { eventually } from '../eventually.js'
import { freePort } from '../server/free-port.js'
import { postgresBinaries } from './postgres-binaries.js'

/** A PostgreSQL server of a test's own, on a port and a directory of its own. */
export interface TestPostgres {
  /** What SERVICE_INGEST_POSTGRES_URL is set to. */
  url: string
  /** Its data directory. */
  data: string
  /** Starts it, the first time or again, and resolves when it takes queries. */
  start(): Promise<void>
  /** Kills it and each of its processes with SIGKILL. */
  kill(): Promise<void>
  /** Stops it in order, without waiting for its clients. */
  stop(): Promise<void>
  /** Has it read its configuration again. */
  reload(): void
  /** Stops all of its processes where they are; `resume` lets them go on. */
  pause(): void
  resume(): void
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
  /** A connection that stays open, as for a lock, to a database: `postgres` unless it is named. */
  connect(database?: string): Promise<Client>
  /** Stops it and removes its directory. */
  remove(): Promise<void>
}

const installed = postgresBinaries()

/** Whether tests with PostgreSQL are left out: where there is none, but never where the whole suite is promised. */
export const noPostgres = installed === undefined && process.env['CI'] !== 'true'

// Left out, but never in silence.
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

/** How a server is made. */
export interface PostgresMaking {
  /** Settings of its configuration. */
  settings?: Readonly<Record<string, string>>
  /** It begins as a copy of this one, which runs, and follows it. */
  standbyOf?: TestPostgres
  /** It begins as a copy of this data directory, whose server does not run, or is being backed up. */
  copyOf?: string
  /** Where its programs are. */
  binaries?: string
}

/** Makes a PostgreSQL server, empty unless it is a standby, which is not started yet. */
export async function makePostgres(making: PostgresMaking = {}): Promise<TestPostgres> {
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
    if (server === undefined) return
    const exited = once(server, 'exit')
    signalAll(server, 'SIGKILL')
    await exited
    server = undefined
  }
  const end = async (signal: NodeJS.Signals) => {
    if (server === undefined) return
    // At once, but it sees its own processes off.
    signalAll(server, 'SIGCONT')
    if (server.kill(signal)) await once(server, 'exit')
    server = undefined
  }
  return {
    url,
    data,
    async start() {
      // The file systems of tests need not survive the machine, only the processes.
      const own = Object.entries({ fsync: 'off', ...settings }).flatMap(([name, value]) => [
        '-c',
        `${name}=${value}`,
      ])
      const args = ['-D', data, '-p', `${port}`, '-h', '127.0.0.1', '-k', '', ...own]
      await eventually(async () => {
        server ??= spawn(join(binaries, 'postgres'), args, { ...user, cwd: directory, stdio: 'ignore' })
        // It may find processes of its killed forerunner still leaving.
        if (server.exitCode !== null) server = undefined
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
  // Connections die with their server, which is what the tests do to it.
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

/** As whom servers run: PostgreSQL refuses to run as root. */
export function serverUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const id = (option: string) => Number(execFileSync('id', [option, 'nobody'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** A server's process and those that it has started, which lead groups of their own. */
export function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return [pid, ...children.trim().split(' ').filter(Boolean).map(Number)]
}

function signalAll(server: ChildProcess | undefined, signal: NodeJS.Signals): void {
  for (const pid of server?.pid === undefined ? [] : familyOf(server.pid)) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended by itself.
    }
  }
}
