import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { Session } from '../../src/cluster/database/session.js'
import { connectPostgres } from '../../src/outbound/postgres.js'
import { startTcpProxy, type TcpProxy } from '../support/cluster/tcp-proxy.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call } from '../support/server/server.js'

describe.skipIf(noPostgres)('a firewall that forgets idle connections to PostgreSQL', () => {
  let cluster: ClusterOfOne
  let proxy: TcpProxy
  let url: string

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
    const port = Number(new URL(cluster.postgres.url).port)
    proxy = await startTcpProxy(port)
    url = cluster.postgres.url.replace(`:${port}/`, `:${proxy.port}/`)
  })

  afterAll(async () => {
    await proxy?.stop()
    await cluster?.remove()
  })

  /** Resolves when all connections whose last statement is like this one have been idle for long enough. */
  const untilIdle = (statement: string) =>
    eventually(async () => {
      const [row] = await cluster.postgres.query<{ idle: boolean }>(
        `SELECT bool_and(state = 'idle' AND state_change < now() - interval '${limits.postgresIdleMs + 500} ms') AS idle
          FROM pg_stat_activity WHERE query LIKE '${statement}' AND pid <> pg_backend_pid()`,
      )
      return row?.idle === true
    })

  it('delays the next write of each shard, which succeeds', async () => {
    const node = await cluster.start({ env: { SERVICE_CLUSTER_URL: url } })
    const write = (agent: string) =>
      call(node, `POST /v1/collections/${agent}/records`, { body: { data: { n: 1 } } })
    await eventually(async () => (await call(node, 'GET /readyz')).status === 200)
    const agents = Array.from({ length: 8 }, (_none, nth) => `agent-${nth}`)
    const writeAll = async () => (await Promise.all(agents.map(write))).map(({ status }) => status)
    expect(new Set(await writeAll())).toEqual(new Set([201]))
    await untilIdle('INSERT INTO strandfast_segments%')
    proxy.forget(limits.postgresIdleMs)
    expect(new Set(await writeAll())).toEqual(new Set([201]))
    expect(node.stderr()).not.toContain('"level":"error"')
    expect(await node.halt()).toBe(0)
  })

  it('fails the next delivery of the sink, which can connect again', async () => {
    const connect = () => connectPostgres({ url, store: 'store' }, new AbortController().signal)
    const batch = {
      shard: 0,
      rows: [],
      erased: [],
      cursor: { blockNo: 1, contentHash: '' },
      failures: 0,
    }
    const sink = await connect()
    await sink.deliver(batch)
    await untilIdle('COMMIT')
    proxy.forget(limits.postgresIdleMs)
    await expect(sink.deliver(batch)).rejects.toThrow('the idle connection no longer answers')
    expect(sink.open).toBe(false)
    const again = await connect()
    expect(await again.deliver(batch)).toEqual({ stored: 0, refused: 0 })
    again.close()
  })

  it('is noticed by the server: it sends keep-alive packets and limits unacknowledged data', async () => {
    const session = await Session.open([url])
    const shown = await session.rows(`SELECT name, setting FROM pg_settings
      WHERE name IN ('tcp_keepalives_idle', 'tcp_user_timeout') ORDER BY name`)
    await session.close()
    expect(shown).toEqual([
      { name: 'tcp_keepalives_idle', setting: '10' },
      { name: 'tcp_user_timeout', setting: '20000' },
    ])
  })
})
