import { existsSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { binariesOf } from '../support/cluster/prepared-data.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('a node that starts with an unsuitable database', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())
  afterEach(() => cluster.killNodes())

  const query = (text: string) => cluster.postgres.query(text)
  const contents = async () => {
    const tables = ['cluster', 'nodes', 'segments', 'checkpoints']
    return Promise.all(tables.map((table) => query(`SELECT * FROM strandfast_${table} ORDER BY 1, 2`)))
  }
  const as = (role: string) => cluster.postgres.url.replace('strandfast@', `${role}@`)
  /** Runs a start that must fail, leave the database unchanged and create no data directory. */
  const refused = async (url = cluster.postgres.url) => {
    const [before, dataDir] = [await contents(), cluster.newPath('data')]
    const env = { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0', SERVICE_CLUSTER_URL: url }
    const { status, stdout, stderr } = await cluster.run(['serve'], env)
    expect(existsSync(dataDir)).toBe(false)
    expect(await contents()).toEqual(before)
    const lines = stderr.trim().split('\n')
    expect([stdout, lines.length], stderr).toEqual(['', 1])
    return [status, lines[0]]
  }

  it('refuses a cluster of another format, and names both', async () => {
    await query('UPDATE strandfast_cluster SET format = 3')
    expect(await refused()).toEqual([
      78,
      expect.stringMatching(
        /holds a cluster of format 3, and this program reads format 2: use a newer version$/,
      ),
    ])
    await query('UPDATE strandfast_cluster SET format = 2')
  })

  it('refuses tables with other columns', async () => {
    await query('ALTER TABLE strandfast_cluster RENAME COLUMN layout TO places')
    expect(await refused()).toEqual([
      78,
      expect.stringContaining('the table strandfast_cluster lacks the column "layout integer NOT NULL"'),
    ])
    await query('ALTER TABLE strandfast_cluster RENAME COLUMN places TO layout')
    await query('ALTER TABLE strandfast_cluster ALTER COLUMN shards TYPE text')
    expect(await refused()).toEqual([
      78,
      expect.stringContaining('the table strandfast_cluster has the column "shards text NOT NULL"'),
    ])
    await query('ALTER TABLE strandfast_cluster ALTER COLUMN shards TYPE integer USING shards::integer')
  })

  it('refuses a role that lacks privileges, and names them', async () => {
    await query('CREATE ROLE reader LOGIN')
    await query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader')
    await query('GRANT INSERT, UPDATE, DELETE ON strandfast_nodes, strandfast_checkpoints TO reader')
    expect(await refused(as('reader'))).toEqual([
      78,
      expect.stringMatching(
        /does not grant the role INSERT on strandfast_segments, UPDATE on strandfast_segments: grant these privileges$/,
      ),
    ])
    await query('GRANT INSERT, UPDATE ON strandfast_segments TO reader')
    const server = await cluster.start({ env: { SERVICE_CLUSTER_URL: as('reader') } })
    expect(await server.halt()).toBe(0)
  })

  it('refuses a role that cannot read or log in, and a database that does not exist', async () => {
    await query('CREATE ROLE guest LOGIN')
    const { url } = cluster.postgres
    for (const [where, refusal] of [
      [as('guest'), 'the role lacks a privilege: permission denied for table strandfast_cluster'],
      [as('absent'), 'it refuses the login of the role: role "absent" does not exist'],
      [url.replace(/postgres$/, 'nowhere'), 'create it, or use another one in the URL'],
    ] as const)
      expect(await refused(where)).toEqual([78, expect.stringContaining(refusal)])
    await query('ALTER ROLE guest NOLOGIN')
    expect(await refused(as('guest'))).toEqual([78, expect.stringContaining('is not permitted to log in')])
  })

  it('can be started again if the database cannot be reached or is read-only', async () => {
    await query('ALTER ROLE reader SET default_transaction_read_only = on')
    expect(await refused(as('reader'))).toEqual([
      1,
      expect.stringMatching(/default_transaction_read_only is on$/),
    ])
    const two = cluster.postgres.url.replace('strandfast@', 'reader@127.0.0.1:1,')
    expect(await refused(two)).toEqual([
      1,
      expect.stringMatching(/127\.0\.0\.1:1: connect ECONNREFUSED .*; 127\.0\.0\.1:\d+: .* is read-only/),
    ])
  })

  it('refuses a PostgreSQL server that is too old', async () => {
    const old = await makeClusterOfOne({ binaries: binariesOf(14) })
    try {
      const env = { SERVICE_DATA_DIR: old.newPath('data'), SERVICE_PORT: '0' }
      for (const command of [['serve'], ['cluster', 'init', '--shards', '1']])
        expect(await old.run(command, env)).toMatchObject({
          status: 78,
          stderr: expect.stringMatching(
            /^The database .* it is PostgreSQL 14\.\d+[^:\n]*: expected 15 or newer\n$/,
          ),
        })
      expect(existsSync(env.SERVICE_DATA_DIR)).toBe(false)
      expect(await old.postgres.query("SELECT 1 FROM pg_tables WHERE tablename LIKE 'strandfast%'")).toEqual(
        [],
      )
    } finally {
      await old.remove()
    }
  })

  it('refuses the cluster of another data directory, and changes neither', async () => {
    const dataDir = cluster.newPath('data')
    const own = await cluster.start({ dataDir })
    await own.halt()
    await query('CREATE DATABASE other')
    const url = cluster.postgres.url.replace(/postgres$/, 'other')
    const env = { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0', SERVICE_CLUSTER_URL: url }
    expect(await cluster.run(['cluster', 'init', '--shards', '1'], env)).toMatchObject({ status: 0 })
    expect(await cluster.run(['serve'], env)).toMatchObject({
      status: 78,
      stderr: expect.stringMatching(/\nThe data directory .* set the right directory or database\n$/),
    })
    const client = await cluster.postgres.connect('other')
    const { rows } = await client.query(
      'SELECT (SELECT count(*) FROM strandfast_nodes) AS nodes, count(*) AS segments FROM strandfast_segments',
    )
    await client.end()
    expect(rows).toEqual([{ nodes: '0', segments: '1' }])
    const again = await cluster.start({ dataDir })
    expect(again.stderr()).not.toContain('was made from the log')
    expect(await again.halt()).toBe(0)
  })
})
