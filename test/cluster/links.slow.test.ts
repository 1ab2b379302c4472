import { once } from 'node:events'
import { copyFileSync, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueLicense } from '../../dist/src/auth/license.js'
import { keyPairFromSeed } from '../../dist/src/strand/keys.js'
import { eventually } from '../support/eventually.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { FrontConnection } from '../support/server/fronts.js'
import { attemptsMax, sharedByFronts } from '../support/server/shared-by-fronts.js'
import { call, type TestServer } from '../support/server/server.js'

const authoritySeed = Buffer.alloc(32, 9)
const leaseSecs = 4
const shards = 3

describe.skipIf(noPostgres)('nodes that share the shards', () => {
  let cluster: ClusterOfOne
  let env: Record<string, string>
  let first: TestServer
  let second: TestServer
  let fronts: [FrontConnection, FrontConnection]

  const start = (node: string, dataDir?: string) =>
    cluster.start({
      env: { ...env, SERVICE_CLUSTER_NODE: node },
      ...(dataDir !== undefined && { dataDir }),
    })
  const write = (server: TestServer, agent: string, n: number) =>
    call(server, `POST /v1/collections/${agent}/records`, { body: { data: { n } } })
  const serves = (server: TestServer) =>
    eventually(async () => (await call(server, 'GET /readyz')).status === 200)
  /** The shards that a node owns. */
  const ownedBy = async (node: string): Promise<number[]> => {
    const { body } = await call(first, 'GET /v1/server')
    const members: { node: string; owned_shards: number[] }[] = body.cluster?.members ?? []
    return members.find((member) => member.node === node)?.owned_shards ?? []
  }
  const areShared = () =>
    eventually(async () => {
      const owned = [await ownedBy('first'), await ownedBy('second')]
      return owned.every(({ length }) => length > 0) && owned.flat().length === shards
    })
  const newKey = async (server: TestServer): Promise<{ id: string; key: string }> => {
    const { body } = await call(server, 'POST /v1/admin/api-keys', {
      body: { name: 'one', scopes: ['records:read'] },
    })
    return { id: body.key_id, key: body.key }
  }

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    env = {
      SERVICE_CLUSTER_LEASE_SECS: String(leaseSecs),
      SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      SERVICE_AUTH_ENABLED: 'true',
      SERVICE_AUTH_RATE_LIMIT_RPS: '0',
      SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: String(attemptsMax),
      SERVICE_LICENSE_PUBLIC_KEY: keyPairFromSeed(authoritySeed).publicKey,
      SERVICE_LICENSE_KEY: await issueLicense(
        authoritySeed,
        { licensee: 'Test', days: 1, features: ['auth'] },
        Date.now(),
      ),
    }
    expect(await cluster.run(['cluster', 'init', '--shards', `${shards}`])).toMatchObject({ status: 0 })
    first = await start('first')
    second = await start('second')
    await serves(second)
    await areShared()
    fronts = [new FrontConnection(first), new FrontConnection(second)]
  })

  afterAll(async () => {
    for (const front of fronts ?? []) front.close()
    await cluster?.remove()
  })

  sharedByFronts(() => ({ fronts, servers: [first, second] }))

  it('route ingests, exports and proofs to each other', async () => {
    const lines = Array.from({ length: 500 }, (_none, n) => JSON.stringify({ n })).join('\n')
    const ingested = await fetch(`${second.url}/v1/ingest/lines`, {
      method: 'POST',
      headers: { authorization: `Bearer ${second.rootKey}`, 'content-type': 'application/x-ndjson' },
      body: lines,
    })
    expect(ingested.status).toBe(200)
    const [here, there] = await Promise.all(
      [second, first].map(async ({ url, rootKey }) => {
        const exported = await fetch(`${url}/v1/strand/export?agent=lines`, {
          headers: { authorization: `Bearer ${rootKey}` },
        })
        return exported.text()
      }),
    )
    expect(here?.split('\n').length).toBeGreaterThan(500)
    expect(here).toBe(there)
    const head = await call(second, 'GET /v1/agents/lines/head')
    const proof = await call(second, `GET /v1/strand/proof?agent=lines&hash=${head.body.chain_head}`)
    expect(proof.status, proof.text).toBe(200)
  })

  it('exclude a hanging node for as long as it may answer, and it admits nothing afterwards', async () => {
    const owned = await ownedBy('first')
    // The first shard decides which keys are valid.
    const [owner, other] = owned.includes(0) ? [first, second] : [second, first]
    const { id, key } = await newKey(owner)
    expect((await call(other, 'GET /v1/agents', { key })).status).toBe(200)
    other.process.kill('SIGSTOP')
    try {
      expect((await call(owner, `DELETE /v1/admin/api-keys/${id}`)).status).toBe(200)
    } finally {
      other.process.kill('SIGCONT')
    }
    const statuses = new Set<number>()
    await eventually(async () => {
      const { status } = await call(other, 'GET /v1/agents', { key })
      statuses.add(status)
      return status === 401
    })
    expect([...statuses].filter((status) => status !== 401 && status !== 503)).toEqual([])
    for (const server of [first, second]) await serves(server)
  })

  it('deliver in their streams what is written after the thread of a shard was restarted', async () => {
    expect((await write(first, 'watched', 0)).status).toBe(201)
    const stream = await openStream(second, '/v1/agents/watched/stream?since=0')
    await stream.until(isCaughtUp)
    await cluster.postgres.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
    )
    await cluster.postgres.query(
      'CREATE TRIGGER refuse BEFORE INSERT ON strandfast_segments FOR EACH ROW EXECUTE FUNCTION refuse()',
    )
    expect((await write(second, 'watched', 1)).status).toBe(503)
    await cluster.postgres.query('DROP TRIGGER refuse ON strandfast_segments')
    await eventually(async () => (await write(second, 'watched', 2)).status === 201)
    await stream.until((events) => numbersOf(events).includes(2))
    expect(numbersOf(stream.events)).toEqual([0, 2])
    stream.close()
    await serves(second)
  })

  it('accept no link from an unknown client, and close a silent connection', async () => {
    const rows = await cluster.postgres.query<{ owns: string }>(
      `SELECT owns FROM strandfast_nodes WHERE node = 'first'`,
    )
    const port = Number(JSON.parse(rows[0]?.owns ?? '').link.split(':')[1])
    for (const bytes of ['GET / HTTP/1.1\r\n\r\n', '\u0016\u0003\u0001\u0000\u0005hello', '']) {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      socket.write(bytes)
      await once(socket, 'close')
    }
    expect((await write(second, 'notes', 2)).status).toBe(201)
  })

  it('are not replaced by a copy of their directory while they are alive', async () => {
    const copy = cluster.newPath('copy')
    mkdirSync(copy, { mode: 0o700 })
    for (const name of ['format.json', 'node.incarnation'])
      copyFileSync(join(first.dataDir, name), join(copy, name))
    const started = await cluster.run(['serve', '--data-dir', copy, '--port', '0'], {
      ...env,
      SERVICE_CLUSTER_NODE: 'first',
    })
    expect(started.status).toBe(1)
    expect(started.stderr).toContain('each node needs its own name')
    expect((await write(first, 'notes', 3)).status).toBe(201)
  })

  it('take over the shards of a killed node, with every answered write', async () => {
    const third = await start('third')
    await serves(third)
    const stream = await openStream(third, '/v1/agents/moved/stream?since=0').catch(() => undefined)
    stream?.close()
    const { key } = await newKey(second)
    const { ticket } = (await call(first, 'POST /v1/stream/tickets', { key })).body
    const followed = `/v1/agents/moved/stream?ticket=${ticket}`
    const answered: string[] = []
    const end = new AbortController()
    const writer = async (server: TestServer) => {
      for (let n = 0; !end.signal.aborted; n++) {
        const answer = await write(server, 'moved', n).catch(() => undefined)
        if (answer?.status === 201) answered.push(answer.body.content_hash)
      }
    }
    const exporter = async (server: TestServer) => {
      while (!end.signal.aborted)
        await call(server, 'GET /v1/strand/export?agent=moved').catch(() => undefined)
    }
    const writers = [writer(second), writer(third), exporter(second), exporter(third)]
    await eventually(() => answered.length > 50)
    await openStream(second, followed, { key: null })
    await first.halt('SIGKILL')
    const before = answered.length
    await eventually(() => answered.length > before + 50)
    end.abort()
    await Promise.all(writers)
    for (const server of [second, third]) {
      await serves(server)
      expect(server.stderr()).not.toContain('a request failed')
      for (const hash of answered) {
        const { status } = await call(server, `GET /v1/agents/moved/records/${hash}`)
        if (status !== 200) expect([hash, status]).toEqual([hash, 200])
      }
    }
    const unavailable = await call(second, `GET ${followed}`, { key: null })
    expect([unavailable.status, unavailable.body.code]).toEqual([503, 'unavailable'])
    const back = await start('first', first.dataDir)
    await serves(back)
    // The issuer of the ticket still has it, and the other nodes forward to it as soon as they have a link.
    await eventually(() => openStream(second, followed, { key: null }).then(Boolean, () => false))
    expect((await write(back, 'moved', -1)).status).toBe(201)
    const shown = await openStream(back, '/v1/agents/moved/stream?since=0')
    await shown.until(isCaughtUp)
    expect(numbersOf(shown.events).length).toBeGreaterThanOrEqual(answered.length)
    shown.close()
    for (const server of [back, second, third]) expect(await server.halt()).toBe(0)
  })
})
