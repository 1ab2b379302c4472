import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

/** The round trip for which docs/CLUSTER.md says that a cluster works, milliseconds. */
const ROUND_TRIP_MS = 300
const names = ['a', 'b', 'c']
const agents = Array.from({ length: 24 }, (_none, nth) => `agent-${nth}`)

describe.skipIf(noPostgres)('three nodes under load that are far away from their database', () => {
  let cluster: ClusterOfOne
  let proxy: TcpProxy
  let nodes: TestServer[]
  const end = new AbortController()
  let load: Promise<unknown>

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '3'])).toMatchObject({ status: 0 })
    const port = Number(new URL(cluster.postgres.url).port)
    proxy = await startTcpProxy(port)
    proxy.delay(ROUND_TRIP_MS / 2)
    const url = cluster.postgres.url.replace(`:${port}/`, `:${proxy.port}/`)
    const env = { SERVICE_CLUSTER_URL: url, SERVICE_CLUSTER_LEASE_SECS: '10' }
    nodes = await Promise.all(
      names.map((name) => cluster.start({ env: { ...env, SERVICE_CLUSTER_NODE: name } })),
    )
    for (const node of nodes) await eventually(async () => (await call(node, 'GET /readyz')).status === 200)
    load = Promise.all(agents.map(writeAll))
  })

  afterAll(async () => {
    end.abort()
    await load
    await proxy?.stop()
    await cluster?.remove()
  })

  const write = (agent: string, node = nodes[0]) =>
    node === undefined
      ? undefined
      : call(node, `POST /v1/collections/${agent}/records`, { body: { data: { n: 1 } } })
  const writeAll = async (agent: string) => {
    while (!end.signal.aborted) await write(agent)
  }
  const owners = async () => {
    const [node] = nodes
    const answer = node === undefined ? undefined : await call(node, 'GET /v1/server')
    const members: { node: string; owned_shards: number[] }[] = answer?.body.cluster?.members ?? []
    return members.filter(({ owned_shards: owned }) => owned.length > 0).map(({ node: name }) => name)
  }

  it('share the shards, and replace a node that is killed', async () => {
    await eventually(async () => (await owners()).length === names.length)
    await nodes.pop()?.halt('SIGKILL')
    await eventually(async () => {
      const wrote = await Promise.all(agents.map((agent) => write(agent, nodes[1])))
      return wrote.every((answer) => answer?.status === 201)
    })
    for (const node of nodes) {
      expect(node.stderr()).not.toContain('did not answer in time')
      expect(node.process.exitCode).toBe(null)
    }
  })
})
