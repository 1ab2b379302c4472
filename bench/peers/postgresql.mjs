import { chownSync, existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeAtExit } from '../load.mjs'
import { recordBody } from '../records.mjs'
import { percentile } from '../statistics.mjs'
import { findProgram, freePort, programVersion, runProgram, startProgram } from './programs.mjs'

/** The directory of Debian's packages of PostgreSQL. */
const INSTALLATIONS = '/usr/lib/postgresql'
/** More than the clients of any workload. */
const MAX_CONNECTIONS = 600
/** A promoted standby can feed another one, which then looks for its primary again quickly. */
const STANDBY_SETTINGS = [
  `max_connections=${MAX_CONNECTIONS}`,
  'wal_keep_size=256MB',
  'wal_retrieve_retry_interval=50ms',
]
const AGENTS = 100
const BATCH_RECORDS = 1_000
const BULK_CONNECTIONS = [1, 4]
/** Transactions of each client in the first turn, which warms up and measures how long connecting takes. */
const FIRST_TRANSACTIONS = 20
/** The share of transactions that are timed individually; all of the first turn, which has few. */
const SAMPLED = 0.2

/** Creates a table of records. */
export const makeTableNamed = (name) => `CREATE TABLE ${name} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent integer NOT NULL,
  taken_at timestamptz NOT NULL DEFAULT now(),
  body jsonb NOT NULL
)`
/** Creates the table that the single INSERTs of `singles` write to. */
export const makeTable = makeTableNamed('records')
const insertOne = `\\set agent random(1, ${AGENTS})\nINSERT INTO records (agent, body) VALUES (:agent, :body);\n`

/**
 * PostgreSQL with its default settings (fsync and synchronous_commit on), loaded over TCP by its own tools.
 * Autovacuum is off and a checkpoint follows each turn, so that it does no work during the turns of others.
 * @type {import('./peer.mjs').Peer}
 */
export const postgresql = {
  name: 'PostgreSQL',
  kinds: ['writes', 'bulk'],
  missing() {
    const names = ['postgres', 'initdb', 'pgbench', 'psql'].filter((name) => program(name) === undefined)
    return names.length === 0 ? undefined : `no ${names.join(', ')}`
  },
  async start({ plan }, kind) {
    const version = programVersion(program('postgres'), /(\d+(\.\d+)*)/)
    const database = await startDatabase()
    await database.query(makeTable)
    const contenders = kind === 'writes' ? singles(database) : bulk(database, plan)
    return { version, contenders, stop: database.stop }
  },
}

function program(name) {
  const versions = existsSync(INSTALLATIONS)
    ? readdirSync(INSTALLATIONS).sort((a, b) => Number(b) - Number(a))
    : []
  return findProgram(
    name,
    versions.map((version) => join(INSTALLATIONS, version, 'bin')),
  )
}

/**
 * A database for this run. Its directory is removed at the end of the run.
 * @param {{standbys?: number}} [how] synchronous standbys; every commit waits for one of them; none unless
 * given
 */
export async function startDatabase({ standbys: count = 0 } = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'strandfast-bench-postgresql-'))
  removeAtExit(directory)
  const user = serverUser()
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid)
  const data = join(directory, 'data')
  const how = { ...user, cwd: directory }
  await runProgram(
    program('initdb'),
    ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--no-locale'],
    how,
  )
  const port = String(await freePort())
  const settings = [`max_connections=${MAX_CONNECTIONS}`, 'autovacuum=off'].flatMap((text) => ['-c', text])
  const server = await startProgram(
    [program('postgres'), '-D', data, '-p', port, '-h', '127.0.0.1', '-k', '', ...settings],
    { ready: /ready to accept connections/, signal: 'SIGINT', options: how },
  )
  const address = ['-h', '127.0.0.1', '-p', port, '-U', 'bench']
  const psql = (...args) =>
    runProgram(program('psql'), [...address, '-X', '-q', '-A', '-t', ...args, 'postgres'])
  const standbys = count === 0 ? [] : await startStandbys({ directory, how, port, psql }, count)
  return {
    directory,
    /** Of the server and its standbys. */
    pids: [server, ...standbys].map(({ pid }) => pid),
    url: urlOf([port]),
    /** Names all servers; the first one accepts writes. */
    urlOfAll: urlOf([port, ...standbys.map((standby) => standby.port)]),
    standbys,
    psql,
    query: (text) => psql('-c', text),
    /** Creates another database on the server. Returns its URL. */
    async make(name) {
      await psql('-c', `CREATE DATABASE ${name}`)
      return urlOf([port], name)
    },
    count: async () => Number(await psql('-c', 'SELECT count(*) FROM records')),
    pgbench: (...args) =>
      runProgram(program('pgbench'), [...address, '-n', ...args, 'postgres'], { cwd: directory }),
    kill: server.kill,
    async stop() {
      for (const { stop } of [server, ...standbys]) await stop()
    },
  }
}

/** The URL of a database on servers of this machine. */
function urlOf(ports, name = 'postgres') {
  return `postgres://bench@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/${name}`
}

/**
 * Starts standbys; commits wait for one of them. They copy this setting, in case one of them becomes the
 * primary.
 */
async function startStandbys(primary, count) {
  const { psql } = primary
  await psql('-c', "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'")
  const standbys = []
  while (standbys.length < count) standbys.push(await startStandby(primary, `standby-${standbys.length}`))
  await psql('-c', 'SELECT pg_reload_conf()')
  return standbys
}

/** Starts a copy of the server that replicates from it, on the same disk. */
async function startStandby({ directory, how, port }, name) {
  const copy = join(directory, name)
  const from = ['-h', '127.0.0.1', '-p', port, '-U', 'bench']
  await runProgram(program('pg_basebackup'), [...from, '-D', copy, '-R', '-X', 'stream', '-c', 'fast'], how)
  const ownPort = String(await freePort())
  const own = ['-D', copy, '-p', ownPort, '-h', '127.0.0.1', '-k', '']
  const settings = STANDBY_SETTINGS.flatMap((text) => ['-c', text])
  const standby = await startProgram([program('postgres'), ...own, ...settings], {
    ready: /ready to accept read-only connections/,
    signal: 'SIGINT',
    options: how,
  })
  return { ...standby, port: ownPort, url: urlOf([ownPort]) }
}

/** PostgreSQL refuses to run as root. */
function serverUser() {
  if (process.getuid?.() !== 0) return {}
  const name = readFileSync('/etc/passwd', 'utf8').includes('\npostgres:') ? 'postgres' : 'nobody'
  const id = (option) => Number(execFileSync('id', [option, name], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** Whether the programs of PostgreSQL are installed, pg_basebackup included. */
export function hasPostgresql() {
  return postgresql.missing() === undefined && program('pg_basebackup') !== undefined
}

/** Single INSERTs over TCP by a number of clients, each with its own backend. */
export function singles(database) {
  const script = join(database.directory, 'insert.sql')
  writeFileSync(script, insertOne)
  /** Seconds that connecting this many clients took the last time; pgbench's clock includes them. */
  const connecting = new Map()
  return ({ connections }) => [
    {
      name: 'PostgreSQL',
      role: 'peer',
      note: 'pgbench over TCP, prepared INSERT of a jsonb row; on disk before the answer; no signature, no chain',
      measure: (seconds) =>
        counted(database, 1, async () => {
          const body = `body=${JSON.stringify(recordBody(1))}`
          const known = connecting.get(connections)
          const sampled = known === undefined ? 1 : SAMPLED
          const log = ['-l', '--log-prefix=single', `--sampling-rate=${sampled}`]
          const length =
            known === undefined ? ['-t', `${FIRST_TRANSACTIONS}`] : ['-T', `${seconds + Math.ceil(known)}`]
          const load = ['-M', 'prepared', '-f', script, '-D', body, '-c', `${connections}`, ...length]
          const { connectSecs, ...result } = readPgbench(await database.pgbench(...load, ...log))
          connecting.set(connections, connectSecs)
          return { ...result, ...latencies(database.directory) }
        }),
    },
  ]
}

function bulk(database, plan) {
  const script = join(database.directory, 'batch.sql')
  const rows = Array.from({ length: BATCH_RECORDS }, (_, index) => JSON.stringify(recordBody(index)))
  writeFileSync(
    script,
    `INSERT INTO records (agent, body) VALUES ${rows.map((row) => `(1, '${row}')`).join(', ')};\n`,
  )
  const note = 'on disk before the answer; no signature, no chain'
  return () => [
    ...BULK_CONNECTIONS.map((connections) => ({
      name: `PostgreSQL, INSERT of 1,000 rows, ${connectionsText(connections)}`,
      role: 'peer',
      note: `pgbench over TCP, jsonb rows; each INSERT ${note}`,
      measure: (seconds) =>
        counted(database, BATCH_RECORDS, async () => {
          const load = ['-M', 'simple', '-f', script, '-c', `${connections}`, '-T', `${seconds}`]
          const { transactions, perSecond } = readPgbench(await database.pgbench(...load))
          return { transactions, perSecond }
        }),
    })),
    ...BULK_CONNECTIONS.map((connections) => ({
      name: `PostgreSQL, COPY, ${connectionsText(connections)}`,
      role: 'peer',
      note: `psql over TCP, jsonb rows; all of a connection in one transaction, ${note}`,
      measure: () => copy(database, { connections, records: plan.bulkRecords }),
    })),
  ]
}

async function copy(database, { connections, records }) {
  const each = Math.ceil(records / connections)
  const file = join(database.directory, `copy-${connections}.tsv`)
  // The JSON of these bodies contains neither a tab nor a backslash.
  if (!existsSync(file))
    writeFileSync(
      file,
      Array.from({ length: each }, (_, index) => `1\t${JSON.stringify(recordBody(index))}\n`).join(''),
    )
  return counted(database, each, async () => {
    const one = () => database.psql('-c', '\\timing on', '-c', `\\copy records (agent, body) FROM '${file}'`)
    const outputs = await Promise.all(Array.from({ length: connections }, one))
    const elapsedMs = Math.max(...outputs.map((output) => Number(/^Time: ([\d.]+) ms/m.exec(output)[1])))
    return { transactions: connections, perSecond: (connections / elapsedMs) * 1_000 }
  })
}

/** Runs a load, checks that its rows are stored and empties the table. */
async function counted(database, rowsPerTransaction, load) {
  try {
    const { transactions, perSecond, ...latency } = await load()
    const rows = await database.count()
    if (rows !== transactions * rowsPerTransaction)
      throw new Error(`${transactions * rowsPerTransaction} rows were acknowledged and ${rows} found`)
    return { value: perSecond * rowsPerTransaction, ...latency }
  } finally {
    await database.query('TRUNCATE records')
    await database.query('CHECKPOINT')
  }
}

/** The number of transactions, and their rate without the time that connecting took. */
function readPgbench(output) {
  const figure = (pattern) => Number(pattern.exec(output)?.[1])
  const transactions = figure(/transactions actually processed: (\d+)/)
  const perSecond = figure(/^tps = ([\d.]+)/m)
  const connectSecs = figure(/^initial connection time = ([\d.]+) ms/m) / 1_000
  if (!(transactions > 0) || figure(/failed transactions: (\d+)/) > 0)
    throw new Error(`Expected a result of pgbench, got: ${output}`)
  return { transactions, perSecond, connectSecs }
}

/** Of the transactions in pgbench's log, whose third column is microseconds. */
function latencies(directory) {
  const names = readdirSync(directory).filter((name) => name.startsWith('single.'))
  const times = names.flatMap((name) => {
    const lines = readFileSync(join(directory, name), 'utf8').trim().split('\n').filter(Boolean)
    return lines.map((line) => Number(line.split(' ')[2]) / 1_000)
  })
  for (const name of names) writeFileSync(join(directory, name), '')
  return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) }
}

function connectionsText(count) {
  return count === 1 ? '1 connection' : `${count} connections`
}
