import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { appendFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
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

/**
 * The data directory of a server that was stopped: empty, with a slot for each server. Copies of it are servers that can
 * follow each other. Made once a version and user, and kept beside other temporary files.
 */
export async function preparedData(major: PostgresMajor): Promise<string> {
  const binaries = binariesOf(major)
  const version = execFileSync(join(binaries, 'postgres'), ['--version'], { encoding: 'utf8' })
  const about = hash('sha256', JSON.stringify([version, process.getuid?.(), rigSettings, serverNames]))
  const kept = join(tmpdir(), `strandfast-rig-postgres-${major}-${about.slice(0, 12)}`)
  if (existsSync(kept)) return kept
  const server = await makePostgres({ settings: rigSettings, binaries })
  appendFileSync(join(server.data, 'postgresql.conf'), `\ninclude_if_exists = '${ownSettings}'\n`)
  await server.start()
  for (const name of serverNames) await server.query('SELECT pg_create_physical_replication_slot($1)', [name])
  await server.stop()
  try {
    renameSync(server.data, kept)
  } catch (error) {
    // Another test may have come first.
    if (!existsSync(kept)) throw error
  }
  await server.remove()
  return kept
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
