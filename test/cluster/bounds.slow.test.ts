import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { shardOf } from '../../src/strand/placement.js'
import { LinkWays } from '../support/cluster/rounds/link-ways.js'
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

  describe('two of them', () => {
    let links: LinkWays
    let servers: [TestServer, TestServer]

    beforeAll(async () => {
      const directory = cluster.place('links')
      mkdirSync(directory)
      links = await LinkWays.between(['first', 'second'], directory)
      const start = (node: string) => {
        const { env, nodeOptions } = links.of(node)
        return cluster.start({ env: { ...env, SERVICE_CLUSTER_NODE: node }, nodeOptions })
      }
      servers = [await start('first'), await start('second')]
      await eventually(async () => (await call(servers[1], 'GET /readyz')).status === 200)
    })

    afterAll(() => links?.stop())

    /** Numbers of the shards that each of them owns. */
    const owned = async () => {
      const { body } = await call(servers[0], 'GET /v1/server')
      const members: { node: string; owned_shards: number[] }[] = body.cluster?.members ?? []
      return members.map((member) => member.owned_shards)
    }
    const isServed = async () => {
      for (const server of servers)
        await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    }

    const add = (name: string, count: number) =>
      cluster.postgres.query(`INSERT INTO strandfast_nodes
        SELECT '${name}' || n, 1, 0, 0, true, '', format_max, settings_digest, replace(owns, 'first.nodes.test', '127.0.0.1'), mac
        FROM strandfast_nodes, generate_series(1, ${count}) AS n WHERE node = 'first'`)

    it('have no link to a node whose row is made up, and say so', async () => {
      await add('false-', 1)
      for (const server of servers)
        await eventually(() => server.stderr().includes('The row of the node false-1 does not verify'))
      await isServed()
    })

    it('answer as before while 3,000 rows are those of no node, and say so', async () => {
      // A shard that moves would wait for who is alive.
      await eventually(async () => {
        const all = await owned()
        return all.every(({ length }) => length > 0) && all.flat().length === 3
      })
      await add('many-', 3_000)
      for (const server of servers) {
        await eventually(() => server.stderr().includes('has 256 or more that are alive'))
        expect((await call(server, 'GET /readyz')).status).toBe(200)
        const wrote = await call(server, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
        expect(wrote.status, wrote.text).toBe(201)
      }
      await cluster.postgres.query("DELETE FROM strandfast_nodes WHERE node LIKE 'many-%'")
      await isServed()
    })

    it('answer all others while one reader fills the link between them, and what is revoked is so before', async () => {
      const [owner, other] = servers
      const [own = []] = await owned()
      const agents = Array.from({ length: 100 }, (_none, nth) => `agent-${nth}`)
      const [large, small] = agents.filter((agent) => own.includes(shardOf(agent, 3)))
      for (let n = 0; n < 20; n++)
        await call(owner, `POST /v1/collections/${large}/records`, {
          body: { data: { text: 'x'.repeat(250_000) } },
        })
      await call(owner, `POST /v1/collections/${small}/records`, { body: { data: { n: 1 } } })
      const { body: made } = await call(owner, 'POST /v1/admin/api-keys', {
        body: { name: 'one', scopes: ['records:read'] },
      })
      const { key, key_id: id } = made
      expect((await call(other, 'GET /v1/agents', { key })).status).toBe(200)
      for (const proxy of links.between(['first'])) proxy.limit(4_000_000)
      const isRead = new AbortController()
      const body = { type: 'latest', limit: 1_000 }
      const read = async () => (await call(other, `POST /v1/agents/${large}/query`, { body })).status
      const reading = Promise.all(Array.from({ length: 4 }, read)).finally(() => isRead.abort())
      const statuses: number[] = []
      const ask = async () => statuses.push((await call(other, `GET /v1/agents/${small}/head`)).status)
      for (let nth = 0; nth < 10; nth++) await ask()
      expect((await call(owner, `DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
      expect((await call(other, 'GET /v1/agents', { key })).status).toBe(401)
      expect(isRead.signal.aborted).toBe(false)
      while (!isRead.signal.aborted) await ask()
      expect(await reading).toEqual([200, 200, 200, 200])
      for (const proxy of links.between(['first'])) proxy.heal()
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(other.stderr()).not.toContain('"peer":"first"')
    })

    it('blame no database where it is the link that is cut off', async () => {
      const [owner, other] = servers
      const [own = []] = await owned()
      const agent = Array.from({ length: 100 }, (_none, nth) => `agent-${nth}`).find((one) =>
        own.includes(shardOf(one, 3)),
      )
      const ask = () => call(other, `GET /v1/agents/${agent}/head`)
      for (const proxy of links.between(['first'])) proxy.hold()
      const details = new Set<string>()
      await eventually(async () => {
        const { body } = await ask()
        details.add(`${body.detail}`)
        return `${body.detail}`.includes('No node serves')
      })
      expect([...details].filter((detail) => detail.includes('database'))).toEqual([])
      for (const proxy of links.between(['first'])) proxy.heal()
      await isServed()
      for (const server of [other, owner]) expect(await server.halt()).toBe(0)
    })
  })
})
