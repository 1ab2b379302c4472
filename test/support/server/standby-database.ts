import type { TestProject } from 'vitest/node'
import { makePostgres } from '../postgres/postgres.js'

/** Starts the PostgreSQL in which each test server behind a standby creates a database. */
export async function setup({ config }: TestProject): Promise<undefined | (() => Promise<void>)> {
  // Only once per run, and only if a project needs it.
  const isNeeded = config.env?.['STRANDFAST_THROUGH_STANDBY'] === '1'
  if (!isNeeded || process.env['STRANDFAST_STANDBY_DATABASE'] !== undefined) return undefined
  const postgres = await makePostgres({ settings: { fsync: 'on', max_connections: '400' } })
  await postgres.start()
  process.env['STRANDFAST_STANDBY_DATABASE'] = postgres.url
  return () => postgres.remove()
}
