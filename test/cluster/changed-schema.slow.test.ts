import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { schemaChanges } from '../support/cluster/hostile/schema-changes.js'
import { inOne, keep, restore, tablesOf } from '../support/cluster/hostile/tables.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

describe.skipIf(noPostgres)('a cluster whose tables are not as they were created', () => {
  let cluster: ClusterOfOne
  let database: Client

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    database = await cluster.postgres.connect()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
    await keep(database, 'whole')
  })

  afterAll(async () => {
    await database?.end()
    await cluster?.remove()
  })

  const serve = () => cluster.run(['serve'], { SERVICE_DATA_DIR: cluster.newPath('data'), SERVICE_PORT: '0' })

  it.each(Object.entries(schemaChanges))(
    'does not start, and says why in one line: %s',
    async (_what, { sql, refusal }) => {
      for (const table of await tablesOf(database)) {
        const change = sql(table)
        if (change.length === 0) continue
        await inOne(database, change)
        const { status, stderr } = await serve()
        expect([status, stderr]).toEqual([78, expect.stringMatching(/^The database .*\n$/)])
        expect(stderr).toMatch(refusal)
        expect(stderr).toContain(table.name)
        await restore(database, 'whole')
      }
    },
  )

  it('does not start without one of its tables', async () => {
    for (const { name } of await tablesOf(database)) {
      await database.query(`DROP TABLE ${name}`)
      const missing = name === 'strandfast_cluster' ? 'holds no cluster' : `the table ${name} is missing`
      expect(await serve()).toMatchObject({ status: 78, stderr: expect.stringContaining(missing) })
      await restore(database, 'whole')
    }
  })

  it('is reported by status and check, which list every fault', async () => {
    await inOne(database, [
      'ALTER TABLE strandfast_segments DROP CONSTRAINT strandfast_segments_pkey',
      'ALTER TABLE strandfast_nodes ENABLE ROW LEVEL SECURITY',
    ])
    const faults = [
      'the table strandfast_nodes has row-level security',
      'the table strandfast_segments has no valid primary key (shard, segment, part)',
    ]
    const status = await cluster.run(['cluster', 'status'])
    const check = await cluster.run(['cluster', 'check', cluster.postgres.url])
    for (const fault of faults) {
      expect(status).toMatchObject({
        status: 1,
        stdout: expect.stringContaining(`PROBLEM    The database: ${fault}`),
      })
      expect(check).toMatchObject({ status: 1, stdout: expect.stringContaining(fault) })
    }
    await restore(database, 'whole')
  })

  it('is reported by status even if it cannot be read', async () => {
    await database.query('ALTER TABLE strandfast_nodes RENAME incarnation TO renamed')
    expect(await cluster.run(['cluster', 'status'])).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(
        /^PROBLEM {4}.*strandfast_nodes lacks the column "incarnation bigint NOT NULL"/m,
      ),
    })
    await restore(database, 'whole')
  })

  it('is not created: init and push refuse what is left of other tables', async () => {
    await database.query('DROP SCHEMA public CASCADE')
    await database.query('CREATE SCHEMA public')
    await database.query('CREATE TABLE strandfast_segments (shard integer)')
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('the table strandfast_segments has no valid primary key'),
    })
    const dataDir = cluster.newPath('single')
    const single = await cluster.start({ dataDir, env: { SERVICE_CLUSTER_URL: '' } })
    await single.halt()
    expect(await cluster.run(['cluster', 'push', '--data-dir', dataDir])).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('the table strandfast_segments has no valid primary key'),
    })
    await restore(database, 'whole')
  })

  describe('with two nodes', () => {
    let owner: TestServer
    let other: TestServer
    const isReady = async () => (await call(other, 'GET /readyz')).status === 200

    beforeAll(async () => {
      const start = (node: string) =>
        cluster.start({ env: { SERVICE_CLUSTER_NODE: node, SERVICE_CLUSTER_LEASE_SECS: '1' } })
      owner = await start('owner')
      await eventually(async () => (await call(owner, 'GET /readyz')).status === 200)
      other = await start('other')
      await eventually(isReady)
    })

    it('is not taken over until it is repaired', async () => {
      await database.query('ALTER TABLE strandfast_segments DROP CONSTRAINT strandfast_segments_pkey')
      await owner.halt('SIGKILL')
      await eventually(() =>
        other.stderr().includes('the table strandfast_segments has no valid primary key'),
      )
      const { rows } = await database.query<{ header: string }>(
        'SELECT header FROM strandfast_segments ORDER BY segment DESC LIMIT 1',
      )
      expect(rows[0]?.header).toContain('\nnode owner')
      // For two leases a node expects that another one takes over.
      await eventually(async () => !(await isReady()))
      await database.query('ALTER TABLE strandfast_segments ADD PRIMARY KEY (shard, segment, part)')
      await eventually(isReady)
    })

    it('gets no heartbeats that it refuses, and the node logs the reason', async () => {
      await database.query(
        "ALTER TABLE strandfast_nodes ADD CONSTRAINT odd CHECK (node <> 'other') NOT VALID",
      )
      await eventually(() => /"level":"error".*strandfast_nodes.*odd/.test(other.stderr()))
      expect(other.stderr()).toContain('the database of the cluster refuses the heartbeats of this node')
      await database.query('ALTER TABLE strandfast_nodes DROP CONSTRAINT odd')
      await eventually(isReady)
    })
  })
})
