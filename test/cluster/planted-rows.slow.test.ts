import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

/* What a person without the master seed writes to the tables of a cluster, beside its log. */
describe.skipIf(noPostgres)('rows of a cluster that were changed by hand', () => {
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
  /** A start on the directory of the first node. */
  const serve = () =>
    cluster.run(['serve'], { SERVICE_DATA_DIR: dataDir, SERVICE_PORT: '0', SERVICE_CLUSTER_NODE: 'first' })

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '2'])).toMatchObject({ status: 0 })
    dataDir = cluster.place('data')
    first = await start('first', dataDir)
  })

  afterAll(() => cluster?.remove())

  it('have the node end whose row it is, and another one shows what was true, and says so', async () => {
    const second = await start('second')
    const members = async () => (await call(first, 'GET /v1/server')).body.cluster
    await eventually(async () => (await members()).members.length === 2)
    await query("UPDATE strandfast_nodes SET address = 'https://somebody.example' WHERE node = 'second'")
    await ended(second)
    expect(second.stderr()).toContain('the row of this node in the database of the cluster does not verify')
    const fault = /^The row of the node second does not verify/
    await eventually(async () => (await members()).faults.some((text: string) => fault.test(text)))
    expect(JSON.stringify(await members())).not.toContain('somebody.example')
    expect(first.stderr()).toContain('rows of nodes in the database of the cluster are not believed')
    const shown = await status()
    expect([shown.status, shown.stdout]).toEqual([
      1,
      expect.stringMatching(/^NOT WELL {3}The row of the node second does not verify/m),
    ])
    expect(shown.stdout).not.toContain('somebody.example')
    // Rows of nodes that were removed may be deleted by hand, and it joins without one.
    await query("DELETE FROM strandfast_nodes WHERE node = 'second'")
    await eventually(async () => (await members()).faults.length === 0)
    const again = await start('second', second.dataDir)
    await eventually(async () => (await call(again, 'GET /readyz')).status === 200)
    await again.halt()
  })

  it('have a start refused, whichever member of the row of the cluster it is', async () => {
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
        stderr: expect.stringContaining('its row of the cluster does not verify'),
      })
      await query(`UPDATE strandfast_cluster SET ${back}`)
    }
    await query('UPDATE strandfast_cluster SET token_era = 7')
    expect(await status()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(
        'NOT WELL   The database of the cluster: its row of the cluster does not',
      ),
    })
    for (const command of [['pull', cluster.place('pulled')], ['push']])
      expect(await cluster.run(['cluster', ...command], { SERVICE_DATA_DIR: dataDir })).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('its row of the cluster does not verify'),
      })
    await query('UPDATE strandfast_cluster SET token_era = 0')
  })

  it('are shown as not well where they are those of the log', async () => {
    await query("UPDATE strandfast_segments SET header = replace(header, 'node first', 'node other')")
    await query('UPDATE strandfast_segments SET shard = 7 WHERE shard = 1')
    const { stdout } = await status()
    await query('UPDATE strandfast_segments SET shard = 1 WHERE shard = 7')
    await query("UPDATE strandfast_segments SET header = replace(header, 'node other', 'node first')")
    expect(stdout).toMatch(/^NOT WELL {3}Segment \d+ of shard 0 does not verify/m)
    expect(stdout).toMatch(/^NOT WELL {3}Segment \d+ of shard 7 does not verify/m)
    expect(stdout).toContain('NOT WELL   The log of shard 1 is not there')
    expect((await status()).stdout).not.toMatch(/Segment|not there/)
  })

  it('have a start refused where they are those of another cluster with the same seed', async () => {
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
      stderr: expect.stringContaining('is that of a node of'),
    })
    // The id alone of the other one.
    await put({ ...own, cluster_id: rows[0].cluster_id })
    expect(await serve()).toMatchObject({ status: 78, stderr: expect.stringContaining('does not verify') })
    await put(own ?? {})
    first = await start('first', dataDir)
    expect((await call(first, 'GET /readyz')).status).toBe(200)
    await first.halt()
  })
})
