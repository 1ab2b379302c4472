import { onStandby } from '../ci-only.js'
import { makePostgres } from '../postgres/postgres.js'

/**
 * The database of the run through nodes that stand by: one for all of its files, each of whose servers has a database of its own
 * there.
 */
export async function setup(): Promise<undefined | (() => Promise<void>)> {
  // Once for all projects, and only where one of them needs it.
  const isWanted = onStandby.length > 0 || process.env['STRANDFAST_THROUGH_STANDBY'] === '1'
  if (!isWanted || process.env['STRANDFAST_STANDBY_DATABASE'] !== undefined) return undefined
  const postgres = await makePostgres({ settings: { fsync: 'on', max_connections: '400' } })
  await postgres.start()
  process.env['STRANDFAST_STANDBY_DATABASE'] = postgres.url
  return () => postgres.remove()
}
