import { mkdirSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { connectBoth } from '../support/server/fronts.js'
import { metricsNow } from '../support/http/metrics.js'
import { call, type TestServer } from '../support/server/server.js'

describe.skipIf(noPostgres)('a node with an unsuitable database or settings', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
  })

  afterAll(() => cluster?.remove())
  afterEach(() => cluster.killNodes())

  const write = (server: TestServer, text: string) =>
    call(server, 'POST /v1/collections/notes/records', { body: { data: { text } } })
  /** Runs a start that must fail. */
  const serve = (env: Record<string, string> = {}) =>
    cluster.run(['serve'], { SERVICE_DATA_DIR: cluster.newPath('data'), SERVICE_PORT: '0', ...env })
  const databaseOf = (url: string, name: string) => url.replace(/\/postgres$/, `/${name}`)

  it('does not start without a cluster, and says how to create one', async () => {
    expect(await serve()).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('holds no cluster: create one with strandfast cluster init'),
    })
    expect(await cluster.run(['cluster', 'status'])).toMatchObject({ status: 78 })
    expect(await cluster.run(['cluster', 'init', '--shards', '0'])).toMatchObject({ status: 78 })
  })

  it('creates a cluster only once', async () => {
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('holds a cluster already'),
    })
  })

  it('requires the secrets of the cluster in its settings', async () => {
    const { SERVICE_MASTER_SEED: _seed, SERVICE_ROOT_API_KEY: _key, ...bare } = cluster.env
    const missing = await cluster.run(['check'], {
      ...bare,
      SERVICE_MASTER_SEED: '',
      SERVICE_ROOT_API_KEY: '',
    })
    expect(missing).toMatchObject({ status: 78 })
    expect(await serve({ SERVICE_MASTER_SEED: '08'.repeat(32) })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('the master seed is not the one of this cluster'),
    })
    expect(await serve({ SERVICE_SHARDS: '3' })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('The cluster has 1 shards and SERVICE_SHARDS is 3'),
    })
    expect(await serve({ SERVICE_LOG_DIR: cluster.newPath('log') })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('SERVICE_LOG_DIR'),
    })
  })

  it('requires a standby in production, unless a setting allows to run without', async () => {
    const production = { SERVICE_ENV: 'production' }
    expect(await serve(production)).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('synchronous_standby_names is empty'),
    })
    const server = await cluster.start({ env: { ...production, SERVICE_CLUSTER_UNREPLICATED: 'true' } })
    expect(server.stderr()).toContain('warning: the cluster’s database does not wait for a standby at commit')
    await server.halt()
  })

  it('does not use a directory of another cluster, and other commands refuse its directory', async () => {
    const own = await cluster.start()
    await write(own, 'something')
    await own.halt()
    const { dataDir } = own
    const alone = {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PORT: '0',
      SERVICE_MASTER_SEED: cluster.env['SERVICE_MASTER_SEED'] ?? '',
    }
    const elsewhere = await cluster.runAlone(['serve'], alone)
    expect(elsewhere).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('strandfast cluster pull'),
    })
    await cluster.postgres.query('CREATE DATABASE second')
    const second = { SERVICE_CLUSTER_URL: databaseOf(cluster.postgres.url, 'second') }
    expect(await cluster.run(['cluster', 'init', '--shards', '1'], second)).toMatchObject({ status: 0 })
    expect(await serve({ ...second, SERVICE_DATA_DIR: dataDir })).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('set the right directory or database'),
    })
    for (const [command, says] of [
      [['backup', cluster.newPath('backup'), '--data-dir', dataDir], 'strandfast cluster pull'],
      [['reshard', '--shards', '2', '--data-dir', dataDir], 'strandfast cluster pull'],
      [['cluster', 'push', '--data-dir', dataDir], 'holds a cluster already'],
    ] as const) {
      const ran = await cluster.run(command, {
        SERVICE_CLUSTER_URL: databaseOf(cluster.postgres.url, 'postgres'),
      })
      expect([ran.status === 0, ran.stderr], command.join(' ')).toEqual([
        false,
        expect.stringContaining(says),
      ])
    }
    const occupied = cluster.newPath('occupied')
    mkdirSync(`${occupied}/something`, { recursive: true })
    expect(await cluster.run(['cluster', 'pull', occupied])).toMatchObject({ status: 78 })
  })

  it('refuses a database that could lose acknowledged writes, denies access or is read-only', async () => {
    await cluster.postgres.query('CREATE ROLE guest LOGIN')
    const guest = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace('strandfast@', 'guest@') }
    expect(await serve(guest)).toMatchObject({
      stderr: expect.stringContaining('the role lacks a privilege'),
    })
    const unknown = { SERVICE_CLUSTER_URL: cluster.postgres.url.replace('strandfast@', 'unknown@') }
    expect(await serve(unknown)).toMatchObject({
      stderr: expect.stringContaining('refuses the login of the role'),
    })
    const nowhere = { SERVICE_CLUSTER_URL: databaseOf(cluster.postgres.url, 'nowhere') }
    expect(await serve(nowhere)).toMatchObject({
      stderr: expect.stringContaining('create it, or use another'),
    })
    await cluster.postgres.query('ALTER ROLE guest SET default_transaction_read_only = on')
    expect(await serve(guest)).toMatchObject({ stderr: expect.stringContaining('is read-only') })
    const closed = { SERVICE_CLUSTER_URL: 'postgres://strandfast@127.0.0.1:1/postgres' }
    expect(await serve(closed)).toMatchObject({ status: 1, stderr: expect.stringContaining('ECONNREFUSED') })
    const unsafe = await makeClusterOfOne({ settings: { fsync: 'off' } })
    try {
      const init = await unsafe.run(['cluster', 'init', '--shards', '1'])
      expect(init).toMatchObject({ status: 78, stderr: expect.stringContaining('fsync = off') })
    } finally {
      await unsafe.remove()
    }
  })

  it('does not start under the name of a live node', async () => {
    const first = await cluster.start({ env: { SERVICE_CLUSTER_NODE: 'first' } })
    expect(await serve({ SERVICE_CLUSTER_NODE: 'first' })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/The node first is already alive on .*: each node needs its own name/),
    })
    await first.halt()
  })

  it('answers 503 while the database is down, and recovers when it is back', async () => {
    const server = await cluster.start()
    expect((await write(server, 'before')).status).toBe(201)
    const made = await call(server, 'POST /v1/admin/api-keys', {
      body: { name: 'reader', scopes: ['records:read'] },
    })
    const { key } = made.body
    expect((await call(server, 'GET /v1/whoami', { key })).status).toBe(200)
    await cluster.postgres.kill()
    const refused = await write(server, 'while it is down')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    await eventually(async () => (await call(server, 'GET /v1/agents/notes/head')).status === 503)
    // Both are undecidable: the key may have been revoked elsewhere, and another one may have been created.
    expect((await call(server, 'GET /v1/whoami', { key })).status).toBe(503)
    expect((await call(server, 'GET /v1/whoami', { key: 'sk_unknown' })).status).toBe(503)
    expect((await call(server, 'GET /v1/whoami')).status).toBe(200)
    expect(await metricsNow(() => call(server, 'GET /metrics'))).toContain('strandfast_cluster_lease 0')
    expect((await call(server, 'GET /readyz')).body.detail).toContain('database of the cluster')
    expect(server.stderr()).toContain('ECONNREFUSED')
    await cluster.postgres.start()
    await eventually(async () => (await write(server, 'after')).status === 201)
    await server.halt()
  })

  it('answers nothing at any front while the database is down, and at all fronts afterwards', async () => {
    const server = await cluster.start({ env: { SERVICE_FRONTS: '2' } })
    expect((await write(server, 'before')).status).toBe(201)
    const fronts = await connectBoth(server)
    const statuses = () =>
      Promise.all(fronts.map(async (one) => (await one.call('GET /v1/agents/notes/head')).status))
    expect(await statuses()).toEqual([200, 200])
    await cluster.postgres.kill()
    await eventually(async () => (await statuses()).every((status) => status === 503))
    await cluster.postgres.start()
    await eventually(async () => (await statuses()).every((status) => status === 200))
    for (const one of fronts) one.close()
    await server.halt()
  })
})
