import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Session } from '../../src/cluster/database/session.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

/** Values that are small, or unlike the defaults. */
const settings: Readonly<Record<string, string>> = {
  bytea_output: 'escape',
  client_encoding: 'LATIN1',
  client_min_messages: 'error',
  DateStyle: 'SQL, DMY',
  default_transaction_deferrable: 'on',
  default_transaction_isolation: 'serializable',
  extra_float_digits: '-15',
  idle_in_transaction_session_timeout: '1ms',
  idle_session_timeout: '1s',
  lock_timeout: '1ms',
  quote_all_identifiers: 'on',
  row_security: 'off',
  standard_conforming_strings: 'off',
  synchronous_commit: 'off',
  temp_file_limit: '0',
  TimeZone: 'Pacific/Chatham',
}
const serverSettings = { SERVICE_CLUSTER_LEASE_SECS: '2', SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0' }

describe.skipIf(noPostgres)('a node whose database its administrator uses too', () => {
  let cluster: ClusterOfOne
  let node: TestServer

  const write = (n: number) =>
    call(node, 'POST /v1/collections/notes/records', { body: { data: { n } } }).then(({ status }) => status)
  const forRole = async (change: (name: string) => string) => {
    for (const name of Object.keys(settings)) await cluster.postgres.query(change(name))
    await cluster.postgres.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'strandfast-cluster'",
    )
  }

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
    node = await cluster.start({ env: serverSettings })
    await eventually(async () => (await write(0)) === 201)
  })

  afterAll(() => cluster?.remove())

  it('serves, starts and shows its status, whatever the defaults of its role are', async () => {
    await forRole((name) => `ALTER ROLE strandfast SET ${name} = '${settings[name]}'`)
    // A running node opens its connections again.
    await eventually(async () => (await write(1)) === 201)
    const { dataDir } = node
    expect(await node.halt()).toBe(0)
    node = await cluster.start({ env: serverSettings, dataDir })
    await eventually(async () => (await write(2)) === 201)
    const { status, stdout } = await cluster.run(['cluster', 'status'], serverSettings)
    expect([status, stdout.split('\n').filter((line) => line.startsWith('PROBLEM'))]).toEqual([
      1,
      ['PROBLEM    No commit waits for a standby: acknowledged records are lost if one disk fails'],
    ])
    await forRole((name) => `ALTER ROLE strandfast RESET ${name}`)
  })

  it('names a lock for which its heartbeats wait, and continues without it', async () => {
    const before = node.stderr().length
    const holder = await cluster.postgres.connect()
    await holder.query('BEGIN; LOCK TABLE strandfast_nodes')
    await eventually(() => node.stderr().slice(before).includes('or for a lock that another session holds'))
    await holder.end()
    await eventually(async () => (await write(3)) === 201)
  })

  it('does not start, and shows no status, as long as a table is locked: both say so', async () => {
    const holder = await cluster.postgres.connect()
    await holder.query('BEGIN; LOCK TABLE strandfast_cluster')
    const env = { ...serverSettings, SERVICE_DATA_DIR: cluster.newPath('data'), SERVICE_PORT: '0' }
    const ran = await Promise.all([cluster.run(['serve'], env), cluster.run(['cluster', 'status'], env)])
    await holder.end()
    expect(ran.map(({ status }) => status)).toEqual([1, 75])
    for (const { stderr } of ran) expect(stderr).toContain('or for a lock that another session holds')
  })

  it('says why its connection has ended', async () => {
    const before = node.stderr().length
    await eventually(async () => {
      await forRole(() => 'SELECT 1')
      return node.stderr().slice(before).includes('terminating connection due to administrator command')
    })
    expect(node.stderr().slice(before)).not.toContain('is not queryable')
  })

  it('sends one statement at a time on a connection', async () => {
    const warnings: string[] = []
    const warned = ({ message }: Error) => void warnings.push(message)
    process.on('warning', warned)
    const session = await Session.open([cluster.postgres.url])
    try {
      const all = [1, 2, 3].map((n) => session.rows('SELECT $1::integer AS n', [n]))
      expect(await Promise.all(all)).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
      await new Promise((resolve) => setImmediate(resolve))
      expect(warnings).toEqual([])
    } finally {
      session.drop()
      process.off('warning', warned)
    }
  })
})
