import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { startTransactionPooler } from '../support/postgres/transaction-pooler.js'
import { call, type TestServer } from '../support/server/server.js'

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

describe.skipIf(noPostgres)('nodes over a database or a network that is slow or hostile', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '3'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())

  const isAlive = async (node: string) => {
    const found = await cluster.postgres.query(
      `SELECT 1 FROM strandfast_nodes WHERE node = '${node}' AND alive`,
    )
    return found.length > 0
  }

  it('does not start by a pooler that lends connections for a transaction: exit 78, and why', async () => {
    const pooler = await startTransactionPooler(Number(new URL(cluster.postgres.url).port))
    const url = cluster.postgres.url.replace(/:\d+\//, `:${pooler.port}/`)
    const env = { SERVICE_CLUSTER_URL: url, SERVICE_DATA_DIR: cluster.place('data'), SERVICE_PORT: '0' }
    const ran = await cluster.run(['serve'], env)
    await pooler.stop()
    expect(ran).toMatchObject({ status: 78, stderr: expect.stringContaining('connect without a pooler') })
  })

  it('ends in order at SIGTERM while it starts and its database answers nothing', async () => {
    const blocker = await cluster.postgres.connect()
    await blocker.query('BEGIN; LOCK TABLE strandfast_segments')
    const child = spawn(process.execPath, [program, 'serve'], {
      env: {
        ...inherited,
        ...cluster.env,
        SERVICE_CLUSTER_NODE: 'starting',
        SERVICE_DATA_DIR: cluster.place('data'),
        SERVICE_PORT: '0',
        SERVICE_SHUTDOWN_TIMEOUT_SECS: '4',
      },
      stdio: 'ignore',
    })
    await eventually(() => isAlive('starting'))
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    await blocker.end()
    expect(code).toBe(0)
  })

  describe('whose table of nodes has rows of no node', () => {
    let servers: [TestServer, TestServer]

    beforeAll(async () => {
      const start = (node: string) =>
        cluster.start({ env: { SERVICE_CLUSTER_NODE: node, SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0' } })
      servers = [await start('first'), await start('second')]
      await eventually(async () => (await call(servers[1], 'GET /readyz')).status === 200)
    })

    const add = (name: string, count: number) =>
      cluster.postgres.query(`INSERT INTO strandfast_nodes
        SELECT '${name}' || n, 1, 0, true, 'http://127.0.0.1:1', format_max, settings_digest, owns
        FROM strandfast_nodes, generate_series(1, ${count}) AS n WHERE node = 'first'`)

    it('has no link to a node that another address leads to, nor to itself', async () => {
      await add('false-', 1)
      for (const server of servers)
        await eventually(() =>
          /This is the node first, start \d+, not false-1, start 1/.test(server.stderr()),
        )
      // It never beats.
      await eventually(async () => !(await isAlive('false-1')))
      for (const server of servers)
        await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    })

    it('answers as before while there are 3,000 of them, and says so', async () => {
      // A shard that moves would wait for who is alive.
      await eventually(async () => {
        const { body } = await call(servers[0], 'GET /v1/server')
        const members: { owned_shards: number[] }[] = body.cluster?.members ?? []
        const owned = members.map((member) => member.owned_shards.length)
        return owned.every((count) => count > 0) && owned.reduce((sum, count) => sum + count) === 3
      })
      await add('many-', 3_000)
      for (const server of servers) {
        await eventually(() => server.stderr().includes('more than 112 that are alive'))
        expect((await call(server, 'GET /readyz')).status).toBe(200)
        const wrote = await call(server, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
        expect(wrote.status, wrote.text).toBe(201)
      }
      await cluster.postgres.query("DELETE FROM strandfast_nodes WHERE node LIKE 'many-%'")
      for (const server of servers) expect(await server.halt()).toBe(0)
    })
  })
})
