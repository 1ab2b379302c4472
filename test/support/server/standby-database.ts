import { makePostgres } from '../postgres/postgres.js'

/**
 * The database of the run through nodes that stand by: one for all of its files, each of whose servers has a database of its own
 * there.
 */
export async function setup(): Promise<() => Promise<void>> {
  const postgres = await makePostgres({ settings: { fsync: 'on', max_connections: '400' } })
  await postgres.start()
  process.env['STRANDFAST_STANDBY_DATABASE'] = postgres.url
  return () => postgres.remove()
}
