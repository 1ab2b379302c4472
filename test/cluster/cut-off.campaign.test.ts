import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { eventually } from '../support/eventually.js'
import { metricsNow } from '../support/http/metrics.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

describe.skipIf(noPostgres)('a node that is cut off from the database only', () => {
  let cluster: ClusterOfOne
  let proxy: TcpProxy

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    proxy = await startTcpProxy(Number(new URL(cluster.postgres.url).port))
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
  })

  afterAll(async () => {
    await cluster?.remove()
    await proxy?.stop()
  })

  const start = (node: string, url = cluster.postgres.url) =>
    cluster.start({
      env: {
        SERVICE_CLUSTER_URL: url,
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LEASE_SECS: '2',
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
      },
    })
  const ready = async (server: TestServer) => (await call(server, 'GET /readyz')).status
  const metric = (server: TestServer, name: string) =>
    metricsNow(() => call(server, 'GET /metrics')).then(
      (text) => new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1],
    )

  it('answers over its links to the owners, processes revocations, and reports that it has no lease', async () => {
    const owner = await start('owner')
    await eventually(async () => (await ready(owner)) === 200)
    const apart = await start('apart', cluster.postgres.url.replace(/:\d+\//, `:${proxy.port}/`))
    await eventually(async () => (await ready(apart)) === 200)
    const { body } = await call(owner, 'POST /v1/admin/api-keys', {
      body: { name: 'one', scopes: ['records:read'] },
    })
    expect((await call(apart, 'GET /v1/agents', { key: body.key })).status).toBe(200)

    proxy.hold('requests', 'answers')
    const alive = "SELECT 1 FROM strandfast_nodes WHERE node = 'apart' AND alive"
    await eventually(async () => (await cluster.postgres.query(alive)).length === 0)
    await eventually(async () => (await metric(apart, 'strandfast_cluster_lease')) === '0')
    expect(await ready(apart)).toBe(503)
    const written = await call(apart, 'POST /v1/collections/notes/records', {
      body: { data: { text: 'by a link' } },
    })
    expect(written.status).toBe(201)
    expect((await call(apart, 'GET /v1/agents', { key: body.key })).status).toBe(200)
    expect((await call(owner, `DELETE /v1/admin/api-keys/${body.key_id}`)).status).toBe(200)
    expect((await call(apart, 'GET /v1/agents', { key: body.key })).status).toBe(401)
    const { status } = await call(apart, `GET /v1/agents/notes/records/${written.body.content_hash}`)
    expect(status).toBe(200)

    proxy.heal()
    await eventually(() => apart.process.exitCode !== null || apart.process.signalCode !== null)
    expect(apart.stderr()).toContain('another node has expelled this one from the cluster')
    expect(await owner.halt()).toBe(0)
  })
})
