import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
})
