import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { clusterTables, statementsOf } from '../../src/cluster/database/statements.js'
import { inOne, literal, rowsOf, tablesOf } from '../support/cluster/hostile/tables.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'

describe.skipIf(noPostgres)('a database of another encoding than UTF8', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
  })

  afterAll(() => cluster?.remove())

  it.each(['LATIN1', 'SQL_ASCII'])(
    'is refused for a cluster, which it could not store: %s',
    async (encoding) => {
      const name = encoding.toLowerCase()
      await cluster.postgres.query(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0`)
      const url = cluster.postgres.url.replace(/postgres$/, name)
      const dataDir = cluster.newPath('single')
      const single = await cluster.start({ dataDir, env: { SERVICE_CLUSTER_URL: '' } })
      await single.halt()
      const env = { SERVICE_CLUSTER_URL: url, SERVICE_PORT: '0' }
      const refusal = `the encoding of the database is ${encoding}, which cannot store every text: create a database with ENCODING 'UTF8'`
      for (const args of [
        ['cluster', 'init', '--shards', '1'],
        ['cluster', 'push', '--data-dir', dataDir],
        ['serve', '--data-dir', cluster.newPath('data')],
      ])
        expect(await cluster.run(args, env), args.join(' ')).toMatchObject({
          status: 78,
          stderr: expect.stringContaining(refusal),
        })
      expect(await cluster.run(['cluster', 'check', url])).toMatchObject({
        status: 1,
        stdout: expect.stringMatching(new RegExp(`^fail {2}encoding +${refusal}`, 'm')),
      })
      const client = await cluster.postgres.connect(name)
      const { rows } = await client.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
      await client.end()
      expect(rows).toEqual([])
    },
  )

  it('is left by a pull and a push, if it holds a cluster', async () => {
    const urlOf = (name: string) => ({
      SERVICE_CLUSTER_URL: cluster.postgres.url.replace(/postgres$/, name),
    })
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
    await cluster.postgres.query("CREATE DATABASE former ENCODING 'LATIN1' TEMPLATE template0")
    await cluster.postgres.query("CREATE DATABASE latter ENCODING 'UTF8' TEMPLATE template0")
    const source = await cluster.postgres.connect()
    const former = await cluster.postgres.connect('former')
    await inOne(former, statementsOf(clusterTables).create)
    for (const table of await tablesOf(source))
      for (const row of await rowsOf(source, table)) {
        const values = table.columns.map((column) => literal(row[column.name], column))
        await former.query(`INSERT INTO ${table.name} VALUES (${values.join(', ')})`)
      }
    await source.end()
    await former.end()
    const directory = cluster.newPath('pulled')
    expect(await cluster.run(['cluster', 'pull', directory], urlOf('former'))).toMatchObject({
      status: 0,
      stderr: expect.stringContaining(
        'warning: the cluster’s database: the encoding of the database is LATIN1',
      ),
    })
    expect(await cluster.run(['cluster', 'push', '--data-dir', directory], urlOf('latter'))).toMatchObject({
      status: 0,
    })
  })
})
