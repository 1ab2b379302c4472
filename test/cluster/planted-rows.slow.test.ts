import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

/* Changes to the tables of a cluster, other than its log, by a person without the master seed. */
describe.skipIf(noPostgres)('manually changed rows of a cluster', () => {
  let cluster: ClusterOfOne
  let dataDir: string
  let first: TestServer

  const env = { SERVICE_CLUSTER_LEASE_SECS: '1' }
  const query = (text: string) => cluster.postgres.query(text)
  const status = () => cluster.run(['cluster', 'status'], env)
  const start = (node: string, directory?: string) =>
    cluster.start({
      env: { ...env, SERVICE_CLUSTER_NODE: node },
      ...(directory !== undefined && { dataDir: directory }),
    })
  const ended = (server: TestServer) =>
    eventually(() => server.process.exitCode !== null || server.process.signalCode !== null)
  /** Starts a server on the directory of the first node. */
  const serve = () =>
    cluster.run(['serve'], { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0', SERVICE_CLUSTER_NODE: 'first' })

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
    dataDir = cluster.newPath('data')
    first = await start('first', dataDir)
  })

  afterAll(() => cluster?.remove())

  it('end the node that owns the row, while other nodes show the last valid row and report the fault', async () => {
    const second = await start('second')
    const members = async () => (await call(first, 'GET /v1/server')).body.cluster
    await eventually(async () => (await members()).members.length === 2)
    await query("UPDATE strandfast_nodes SET address = 'https://attacker.example' WHERE node = 'second'")
    await ended(second)
    expect(second.stderr()).toContain('the row of this node in the database of the cluster does not verify')
    const fault = /^The row of the node second does not verify/
    await eventually(async () => (await members()).faults.some((text: string) => fault.test(text)))
    expect(JSON.stringify(await members())).not.toContain('attacker.example')
    expect(first.stderr()).toContain('rows of nodes in the database of the cluster were rejected')
    const shown = await status()
    expect([shown.status, shown.stdout]).toEqual([
      1,
      expect.stringMatching(/^PROBLEM {4}The row of the node second does not verify/m),
    ])
    expect(shown.stdout).not.toContain('attacker.example')
    // Rows of removed nodes may be deleted manually; the node then joins without one.
    await query("DELETE FROM strandfast_nodes WHERE node = 'second'")
    await eventually(async () => (await members()).faults.length === 0)
    const again = await start('second', second.dataDir)
    await eventually(async () => (await call(again, 'GET /readyz')).status === 200)
    await again.halt()
  })

  it('make a following node log each reason for which it cannot follow', async () => {
    const second = await start('second')
    await eventually(async () => (await call(second, 'GET /readyz')).status === 200)
    await query('ALTER TABLE strandfast_segments RENAME TO hidden')
    await eventually(() => /a table of the cluster is missing|segments is missing/.test(second.stderr()))
    await query('ALTER TABLE hidden RENAME header TO bent; ALTER TABLE hidden RENAME TO strandfast_segments')
    await eventually(() => /column .{1,20} does not exist|lacks the column/.test(second.stderr()))
    await query('ALTER TABLE strandfast_segments RENAME bent TO header')
    await second.halt()
  })

  it('prevent a start, whichever column of the cluster’s row is changed', async () => {
    await first.halt()
    for (const [change, back] of [
      ['shards = 3', 'shards = 2'],
      ['token_era = 7', 'token_era = 0'],
      ['ready = false', 'ready = true'],
      ['layout = 1', 'layout = 0'],
      ['revision = 2', 'revision = 1'],
    ]) {
      await query(`UPDATE strandfast_cluster SET ${change}`)
      expect(await serve(), change).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('its cluster row does not verify'),
      })
      await query(`UPDATE strandfast_cluster SET ${back}`)
    }
    await query('UPDATE strandfast_cluster SET token_era = 7')
    expect(await status()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining('PROBLEM    The database of the cluster: its cluster row does not'),
    })
    for (const command of [['pull', cluster.newPath('pulled')], ['push']])
      expect(await cluster.run(['cluster', ...command], { SERVICE_DATA_DIR: dataDir })).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('its cluster row does not verify'),
      })
    await query('UPDATE strandfast_cluster SET token_era = 0')
  })

  it('are reported as not well if they are segments of the log', async () => {
    await query("UPDATE strandfast_segments SET header = replace(header, 'node first', 'node other')")
    await query('UPDATE strandfast_segments SET shard = 7 WHERE shard = 1')
    const { stdout } = await status()
    await query('UPDATE strandfast_segments SET shard = 1 WHERE shard = 7')
    await query("UPDATE strandfast_segments SET header = replace(header, 'node other', 'node first')")
    expect(stdout).toMatch(/^PROBLEM {4}Segment \d+ of shard 0 does not verify/m)
    expect(stdout).toMatch(/^PROBLEM {4}Segment \d+ of shard 7 does not verify/m)
    expect(stdout).toContain('PROBLEM    The log of shard 1 is missing')
    expect((await status()).stdout).not.toMatch(/Segment|not there/)
  })

  it('prevent a start if they belong to another cluster with the same seed', async () => {
    await query('CREATE DATABASE staging')
    const url = cluster.postgres.url.replace(/postgres$/, 'staging')
    const made = await cluster.run(['cluster', 'init', '--shards', '2'], { SERVICE_CLUSTER_URL: url })
    expect(made.status).toBe(0)
    const staging = await cluster.postgres.connect('staging')
    const { rows } = await staging.query('SELECT * FROM strandfast_cluster')
    await staging.end()
    const [own] = await query('SELECT * FROM strandfast_cluster')
    const put = (row: Record<string, unknown>) => {
      const names = Object.keys(row)
      const set = names.map((name, at) => `${name} = $${at + 1}`).join(', ')
      return cluster.postgres.query(`UPDATE strandfast_cluster SET ${set}`, Object.values(row))
    }
    await put(rows[0])
    expect(await serve()).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('belongs to a node of'),
    })
    // Only the id of the other cluster.
    await put({ ...own, cluster_id: rows[0].cluster_id })
    expect(await serve()).toMatchObject({ status: 78, stderr: expect.stringContaining('does not verify') })
    await put(own ?? {})
    first = await start('first', dataDir)
    expect((await call(first, 'GET /readyz')).status).toBe(200)
    await first.halt()
  })
})
