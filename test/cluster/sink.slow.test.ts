import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shardOf } from '../../dist/src/strand/placement.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const shards = 4
/** Records of each ingest. */
const count = 40

describe.skipIf(noPostgres)('the PostgreSQL sink of a cluster', () => {
  let cluster: ClusterOfOne
  let first: TestServer
  let second: TestServer
  /** An agent in each shard. */
  const agents = Array.from({ length: shards }, (_none, shard) => {
    const names = Array.from({ length: 100 }, (_no, n) => `feed-${n}`)
    return names.find((name) => shardOf(name, shards) === shard) ?? ''
  })

  const start = (node: string) =>
    cluster.start({
      env: {
        SERVICE_CLUSTER_NODE: node,
        SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
        SERVICE_INGEST_POSTGRES_URL: cluster.postgres.url,
      },
    })
  /** The number of shards that each node owns. */
  const owned = async (server: TestServer): Promise<number[]> => {
    const { body } = await call(server, 'GET /v1/server')
    return (body.cluster?.members ?? []).map((one: { owned_shards: number[] }) => one.owned_shards.length)
  }
  const ingest = async (server: TestServer) => {
    const numbers = Array.from({ length: count }, (_none, n) => n)
    const raw = numbers.map((n) => JSON.stringify({ agent: agents[n % shards], data: { n } })).join('\n')
    const headers = { 'content-type': 'application/x-ndjson' }
    const { status, text } = await call(server, 'POST /v1/ingest', { raw, headers })
    expect(status, text).toBe(200)
  }
  /** Rows of each agent; the key of the table excludes doubles. */
  const rows = async () => {
    const query = 'SELECT agent, count(*)::int AS rows FROM strandfast_records GROUP BY agent'
    const found = await cluster.postgres.query<{ agent: string; rows: number }>(query).catch(() => [])
    return Object.fromEntries(found.map((one) => [one.agent, one.rows]))
  }
  const delivered = (each: number) =>
    eventually(async () => {
      const found = await rows()
      return agents.every((agent) => found[agent] === each)
    })
  const figure = async ({ url }: TestServer, name: string) => {
    const text = await (await fetch(`${url}/metrics`)).text()
    return Number(new RegExp(`^strandfast_sink_${name} (\\S+)$`, 'm').exec(text)?.[1])
  }

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    await cluster.run(['cluster', 'init', '--shards', `${shards}`])
    first = await start('first')
    second = await start('second')
    await eventually(async () => {
      const each = await owned(first)
      return each.length === 2 && each.every((one) => one === shards / 2)
    })
  })

  afterAll(async () => {
    await cluster?.remove()
  })

  it('receives the rows of every shard, each from the node that owns it', async () => {
    await ingest(first)
    await delivered(count / shards)
    // As many rows as one delivery of each record: nothing was delivered again.
    for (const server of [first, second]) {
      await eventually(async () => (await figure(server, 'rows_total')) === count / 2)
      expect(await figure(server, 'failures_total')).toBe(0)
    }
  })

  it('continues after its connections have ended', async () => {
    await cluster.postgres.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%strandfast_records%' AND pid <> pg_backend_pid()",
    )
    await ingest(second)
    await delivered((2 * count) / shards)
  })

  it('receives the rows of a killed node from the node that takes over its shards', async () => {
    await second.halt('SIGKILL')
    await eventually(async () => (await owned(first)).join() === `${shards}`)
    await ingest(first)
    await delivered((3 * count) / shards)
    await eventually(async () => (await figure(first, 'lag_records')) === 0)
  })
})
