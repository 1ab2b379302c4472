import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Session } from '../../src/cluster/database/session.js'
import { clusterTables } from '../../src/cluster/database/statements.js'
import { examineTables, tableNames } from '../../src/cluster/database/tables.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const tables = tableNames(clusterTables)
/** Names that cover all shards. */
const agents = Array.from({ length: 12 }, (_none, n) => `agent-${n}`)

describe.skipIf(noPostgres)('a copy of the database of a running cluster', () => {
  let cluster: ClusterOfOne
  let first: TestServer

  const start = (node: string, url = cluster.postgres.url) =>
    cluster.start({
      env: {
        SERVICE_CLUSTER_URL: url,
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '1',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      },
    })
  const write = (server: TestServer, agent = 'agent-0') =>
    call(server, `POST /v1/collections/${agent}/records`, { body: { data: { agent } } })
  /** Resolves when a node serves all shards. */
  const serves = (server: TestServer) =>
    eventually(async () => {
      const answers = await Promise.all(agents.map((agent) => write(server, agent)))
      return answers.every(({ status }) => status === 201)
    })
  const countIn = async (schema: string): Promise<string | undefined> => {
    const rows = await cluster.postgres.query<{ count: string }>(
      `SELECT count(*) FROM ${schema}.strandfast_segments`,
    )
    return rows[0]?.count
  }

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
    first = await start('first')
    await serves(first)
  })

  afterAll(() => cluster?.remove())

  it('is not written by a node that has another URL, while a node of the original serves', async () => {
    const url = cluster.postgres.url.replace(/postgres$/, 'copy')
    await cluster.postgres.query('CREATE DATABASE copy')
    await cluster.run(['cluster', 'init', '--shards', '2'], { SERVICE_CLUSTER_URL: url })
    const copy = await cluster.postgres.connect('copy')
    for (const table of tables) {
      const [row] = await cluster.postgres.query<{ rows: string }>(
        `SELECT json_agg(t)::text AS rows FROM ${table} t`,
      )
      await copy.query(`DELETE FROM ${table}`)
      await copy.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(null::${table}, $1)`, [
        row?.rows ?? '[]',
      ])
    }
    const segments = async () => (await copy.query('SELECT count(*) FROM strandfast_segments')).rows
    const before = await segments()
    const second = await start('second', url)
    // It would have taken all shards over by now.
    await eventually(() => second.stderr().includes('is the database of this node a copy?'))
    expect((await write(second)).status).toBe(503)
    expect(second.stderr()).toContain(
      'The node second is not a live member of the cluster, as the database of the node first shows it',
    )
    expect(await segments()).toEqual(before)
    await serves(first)
    // Without the original cluster, the copy is one that was restored.
    expect(await first.halt()).toBe(0)
    await serves(second)
    expect(await second.halt()).toBe(0)
    await copy.end()
    first = await start('first')
    await serves(first)
  })

  it('is recognized by every plan of the query', async () => {
    const session = await Session.open([cluster.postgres.url])
    const found = new Set<string>()
    for (const joins of ['hashjoin', 'nestloop', 'mergejoin']) {
      await session.write(`SET enable_${joins} = off`, [])
      found.add((await examineTables(session, clusterTables)).identity)
    }
    session.drop()
    expect(found.size).toBe(1)
  })

  it('is not used by running nodes, if it is in a schema that comes first in their path', async () => {
    const original = await countIn('public')
    await cluster.postgres.query(
      [
        'BEGIN; CREATE SCHEMA strandfast',
        ...tables.map(
          (table) =>
            `CREATE TABLE strandfast.${table} (LIKE public.${table} INCLUDING ALL); INSERT INTO strandfast.${table} TABLE public.${table}`,
        ),
        'COMMIT',
      ].join('; '),
    )
    const copied = await countIn('strandfast')
    // Its connections stay with the tables that they have used.
    await serves(first)
    expect(Number(await countIn('public'))).toBeGreaterThan(Number(original))
    await cluster.postgres.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'strandfast-cluster'",
    )
    await eventually(() =>
      first.stderr().includes('its tables are not those with which this node has started'),
    )
    expect((await write(first)).status).toBe(503)
    expect(await countIn('strandfast')).toBe(copied)
    await cluster.postgres.query('DROP SCHEMA strandfast CASCADE')
    await serves(first)
  })
})
