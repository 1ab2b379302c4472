import { execFileSync } from 'node:child_process'
import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type PostgresMajor, postgresBinaries } from '../postgres/postgres-binaries.js'
import { makePostgres } from '../postgres/postgres.js'

/** Names of the servers of a rig, by which a primary knows its standbys and keeps a slot for each. */
export const serverNames = ['s0', 's1', 's2'] as const

/** A file of settings that may change while a server runs. */
export const ownSettings = 'rig.conf'

/** Settings of every server of a rig. */
export const rigSettings = {
  max_connections: '100',
  shared_buffers: '8MB',
  wal_keep_size: '256MB',
  // A standby looks for its primary again at once.
  wal_retrieve_retry_interval: '50ms',
  wal_receiver_status_interval: '1s',
} as const

const prepared = new Map<PostgresMajor, Promise<string>>()

/**
 * The data directory of a server that was stopped: empty, with a slot for each server. Copies of it are servers that can
 * follow each other. Made once a process.
 */
export function preparedData(major: PostgresMajor): Promise<string> {
  const made = prepared.get(major) ?? prepare(major)
  prepared.set(major, made)
  return made
}

async function prepare(major: PostgresMajor): Promise<string> {
  const binaries = binariesOf(major)
  const server = await makePostgres({ settings: rigSettings, binaries })
  appendFileSync(join(server.data, 'postgresql.conf'), `\ninclude_if_exists = '${ownSettings}'\n`)
  await server.start()
  for (const name of serverNames) await server.query('SELECT pg_create_physical_replication_slot($1)', [name])
  await server.stop()
  process.once('exit', () => rmSync(join(server.data, '..'), { recursive: true, force: true }))
  return server.data
}

/** Where the programs of a version are. @throws Error where they cannot be had */
export function binariesOf(major: PostgresMajor): string {
  const binaries = postgresBinaries(major)
  if (binaries === undefined)
    throw new Error(`Expected PostgreSQL ${major} to be installed, or to be had from npm`)
  return binaries
}

/** Copies a data directory over another one, as its owner. */
export function copyData(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  execFileSync('cp', ['-a', from, to])
}
