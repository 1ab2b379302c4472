import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inherited } from '../../scripts/crash-loop/inherited.mjs'
import { examineSessions } from '../../src/cluster/database/server-check.js'
import { shardOf } from '../../src/strand/placement.js'
import { startTcpProxy } from '../support/cluster/tcp-proxy.js'
import { LinkProxies } from '../support/cluster/rounds/link-proxies.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { noPooler, startTransactionPooler } from '../support/postgres/transaction-pooler.js'
import { call, type TestServer } from '../support/server/server.js'

const program = join(import.meta.dirname, '../../dist/program/strandfast.js')

describe.skipIf(noPostgres)('nodes with a slow or hostile database or network', () => {
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

  it.skipIf(noPooler)(
    'do not start behind a pooler in transaction mode: exit 78 and the reason',
    async () => {
      const pooler = await startTransactionPooler(cluster.postgres.url)
      const env = {
        SERVICE_CLUSTER_URL: pooler.url,
        SERVICE_DATA_DIR: cluster.newPath('data'),
        SERVICE_PORT: '0',
      }
      const ran = await cluster.run(['serve'], env)
      await pooler.stop()
      expect(ran).toMatchObject({ status: 78, stderr: expect.stringContaining('connect nodes directly') })
    },
  )

  it('start with a database whose answers take 400 ms', async () => {
    const port = Number(new URL(cluster.postgres.url).port)
    const proxy = await startTcpProxy(port)
    proxy.delay(200)
    try {
      // A session took twelve round trips, and has three seconds.
      await examineSessions([cluster.postgres.url.replace(`:${port}/`, `:${proxy.port}/`)])
    } finally {
      await proxy.stop()
    }
  })

  it('end in order at SIGTERM during a start while their database does not answer', async () => {
    const blocker = await cluster.postgres.connect()
    await blocker.query('BEGIN; LOCK TABLE strandfast_segments')
    const child = spawn(process.execPath, [program, 'serve'], {
      env: {
        ...inherited,
        ...cluster.env,
        SERVICE_CLUSTER_NODE: 'starting',
        SERVICE_DATA_DIR: cluster.newPath('data'),
        SERVICE_PORT: '0',
        SERVICE_SHUTDOWN_TIMEOUT_SECS: '4',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let stderr = ''
    child.stderr.on('data', (part) => (stderr += part))
    await eventually(() => isAlive('starting'))
    child.kill('SIGTERM')
    const ended = await once(child, 'close')
    await blocker.end()
    expect(ended, stderr).toEqual([0, null])
  })

  describe('two nodes', () => {
    let links: LinkProxies
    let servers: [TestServer, TestServer]

    beforeAll(async () => {
      const directory = cluster.newPath('links')
      mkdirSync(directory)
      links = await LinkProxies.between(['first', 'second'], directory)
      const start = (node: string) => {
        const { env, nodeOptions } = links.of(node)
        return cluster.start({ env: { ...env, SERVICE_CLUSTER_NODE: node }, nodeOptions })
      }
      servers = [await start('first'), await start('second')]
      await eventually(async () => (await call(servers[1], 'GET /readyz')).status === 200)
    })

    afterAll(() => links?.stop())

    /** The shards that each node owns. */
    const owned = async () => {
      const { body } = await call(servers[0], 'GET /v1/server')
      const members: { node: string; owned_shards: number[] }[] = body.cluster?.members ?? []
      return members.map((member) => member.owned_shards)
    }
    const isServed = async () => {
      for (const server of servers)
        await eventually(async () => (await call(server, 'GET /readyz')).status === 200)
    }

    /** Two agents that the first node owns, one of them with long records. */
    const makeAgents = async (name: string, longRecords: number) => {
      const [own = []] = await owned()
      const agents = Array.from({ length: 100 }, (_none, nth) => `${name}-${nth}`)
      const [large, small] = agents.filter((agent) => own.includes(shardOf(agent, 3)))
      const write = (agent: string | undefined, data: object) =>
        call(servers[0], `POST /v1/collections/${agent}/records`, { body: { data } })
      for (let n = 0; n < longRecords; n++) await write(large, { text: 'x'.repeat(250_000) })
      await write(small, { n: 1 })
      return { large, small }
    }
    const makeKey = async (name: string): Promise<{ key: string; key_id: string }> =>
      (await call(servers[0], 'POST /v1/admin/api-keys', { body: { name, scopes: ['records:read'] } })).body

    const add = (name: string, count: number) =>
      cluster.postgres.query(`INSERT INTO strandfast_nodes
        SELECT '${name}' || n, 1, 0, 0, true, '', format_max, settings_digest, replace(owns, 'first.nodes.test', '127.0.0.1'), mac
        FROM strandfast_nodes, generate_series(1, ${count}) AS n WHERE node = 'first'`)

    it('do not link to a node with a forged row, and log it', async () => {
      await add('false-', 1)
      for (const server of servers)
        await eventually(() => server.stderr().includes('The row of the node false-1 does not verify'))
      await isServed()
    })

    it('answer as before with 3,000 forged rows, and log them', async () => {
      // A shard that moves would wait until the live nodes are known.
      await eventually(async () => {
        const all = await owned()
        return all.every(({ length }) => length > 0) && all.flat().length === 3
      })
      await add('many-', 3_000)
      for (const server of servers) {
        await eventually(() => server.stderr().includes('has 256 or more rows marked alive'))
        expect((await call(server, 'GET /readyz')).status).toBe(200)
        const wrote = await call(server, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
        expect(wrote.status, wrote.text).toBe(201)
      }
      await cluster.postgres.query("DELETE FROM strandfast_nodes WHERE node LIKE 'many-%'")
      await isServed()
    })

    it('answer other callers while one reader fills the link between them, and a revocation takes effect in the meantime', async () => {
      const [owner, other] = servers
      const { large, small } = await makeAgents('agent', 20)
      const { key, key_id: id } = await makeKey('one')
      expect((await call(other, 'GET /v1/agents', { key })).status).toBe(200)
      for (const proxy of links.between(['first'])) proxy.limit(4_000_000)
      const isRead = new AbortController()
      const body = { type: 'latest', limit: 1_000 }
      const read = async () => (await call(other, `POST /v1/agents/${large}/query`, { body })).status
      const reading = Promise.all(Array.from({ length: 4 }, read)).finally(() => isRead.abort())
      const statuses: number[] = []
      const request = async () => statuses.push((await call(other, `GET /v1/agents/${small}/head`)).status)
      for (let nth = 0; nth < 10; nth++) await request()
      expect((await call(owner, `DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
      expect((await call(other, 'GET /v1/agents', { key })).status).toBe(401)
      expect(isRead.signal.aborted).toBe(false)
      while (!isRead.signal.aborted) await request()
      expect(await reading).toEqual([200, 200, 200, 200])
      for (const proxy of links.between(['first'])) proxy.heal()
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(other.stderr()).not.toContain('"peer":"first"')
    })

    it('stay linked while the exports of one reader fill the link between them, which ends some of them', async () => {
      const [, other] = servers
      const { large, small } = await makeAgents('exported', 2)
      const { key } = await makeKey('reader')
      const read = () =>
        call(other, `GET /v1/strand/export?agent=${large}`, { key }).then(
          ({ status, text }) => `${status} ${text.length > 500_000}`,
          (error: unknown) => (error instanceof TypeError ? 'cut' : String(error)),
        )
      const whole = '200 true'
      await eventually(async () => (await read()) === whole)
      for (const proxy of links.between(['first'])) proxy.limit(2_000_000)
      const results: string[] = []
      const reading = Promise.all(Array.from({ length: 120 }, async () => results.push(await read())))
      const request = async () => (await call(other, `GET /v1/agents/${small}/head`)).status
      const statuses: number[] = []
      while (!results.includes('cut') && results.length < 120) statuses.push(await request())
      for (const proxy of links.between(['first'])) proxy.heal()
      await reading
      expect(new Set(results)).toEqual(new Set([whole, 'cut']))
      expect(results.filter((result) => result === whole).length).toBeGreaterThan(50)
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(other.stderr()).not.toContain('"peer":"first"')
    })

    it('do not blame the database if the link is cut', async () => {
      const [owner, other] = servers
      const [own = []] = await owned()
      const agent = Array.from({ length: 100 }, (_none, nth) => `agent-${nth}`).find((one) =>
        own.includes(shardOf(one, 3)),
      )
      const request = () => call(other, `GET /v1/agents/${agent}/head`)
      for (const proxy of links.between(['first'])) proxy.hold()
      const details = new Set<string>()
      await eventually(async () => {
        const { body } = await request()
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
