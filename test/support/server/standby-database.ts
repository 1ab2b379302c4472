import type { TestProject } from 'vitest/node'
import { makePostgres } from '../postgres/postgres.js'

/** Starts the PostgreSQL in which each server of the tests through a standby makes a database. */
export async function setup({ config }: TestProject): Promise<undefined | (() => Promise<void>)> {
  // Once for the whole run, and only where a project needs it.
  const isWanted = config.env?.['STRANDFAST_THROUGH_STANDBY'] === '1'
  if (!isWanted || process.env['STRANDFAST_STANDBY_DATABASE'] !== undefined) return undefined
  const postgres = await makePostgres({ settings: { fsync: 'on', max_connections: '400' } })
  await postgres.start()
  process.env['STRANDFAST_STANDBY_DATABASE'] = postgres.url
  return () => postgres.remove()
}
