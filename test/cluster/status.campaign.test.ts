import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

describe.skipIf(noPostgres)('strandfast cluster status', () => {
  let cluster: ClusterOfOne
  let standby: TestPostgres

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    standby = await makePostgres({ standbyOf: cluster.postgres })
    await standby.start()
    await cluster.postgres.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
    cluster.postgres.reload()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
  })

  afterAll(async () => {
    await cluster?.remove()
    await standby?.remove()
  })

  const start = (node: string, env: Record<string, string> = {}) =>
    cluster.start({ env: { SERVICE_CLUSTER_NODE: node, SERVICE_CLUSTER_LEASE_SECS: '1', ...env } })
  const status = () => cluster.run(['cluster', 'status'], { SERVICE_CLUSTER_LEASE_SECS: '1' })
  /** A node that has a link answers as the owner does: that it stands by is told by its row alone. */
  const standsBy = (server: TestServer) =>
    eventually(async () => (await call(server, 'GET /readyz')).status === 200)
  /** Waits until the status is as expected: what a node tells of itself goes with its next beat. */
  const shows = async (...expected: RegExp[]) => {
    let last = await status()
    await eventually(async () => {
      last = await status()
      return expected.every((one) => one.test(last.stdout))
    })
    return last
  }

  it('shows that no node is alive, with exit code 1', async () => {
    const shown = await shows(/NOT WELL {3}No node is alive/)
    expect(shown.status).toBe(1)
    expect(shown.stdout).toContain('none has ever joined')
  })

  it('shows who serves since when and where, who stands by and how far behind, and that all is well', async () => {
    const first = await start('first', { SERVICE_CLUSTER_ADVERTISE: 'https://first.example' })
    const second = await start('second')
    await standsBy(second)
    const { status: code, stdout } = await shows(
      /second {2}stands by, 1 copy/,
      /first {3}SERVES/,
      /copies at second/,
    )
    expect(stdout).toMatch(
      /^node {7}first {3}SERVES 1 shard since 20\S+Z, on https:\/\/first\.example, version \S+, joined 20\S+Z, lease 1 s$/m,
    )
    expect(stdout).toMatch(/^node {7}second {2}stands by, 1 copy, \d\.\d s behind, on 127\.0\.0\.1, version/m)
    expect([stdout.split('\n').at(-2), code]).toEqual(['all is well', 0])
    expect(stdout).toMatch(/^shard 0 {4}owned by first, copies at second; segment \d+, written by first;/m)
    // A node that stood by has left when it ends, so that nobody waits for its silence.
    expect(await second.halt()).toBe(0)
    expect(await status()).toMatchObject({ status: 0, stdout: expect.stringMatching(/second {2}stopped/) })
    expect(await first.halt()).toBe(0)
  })

  it('names the settings in which nodes differ, as the log of the node that joins does, and no secret', async () => {
    const first = await start('first')
    const second = await start('second', {
      SERVICE_AUTH_ENABLED: 'true',
      SERVICE_CLUSTER_LEASE_SECS: '2',
      SERVICE_LOG_LEVEL: 'warn',
      SERVICE_ROOT_API_KEY: 'another-root-key-of-thirty-two-characters',
    })
    await standsBy(second)
    const { status: code, stdout } = await shows(/first {3}SERVES/, /second {2}stands by/)
    expect(code).toBe(1)
    expect(stdout).toContain('NOT WELL   Nodes differ in SERVICE_AUTH_ENABLED: first false, second true')
    expect(stdout).toContain('NOT WELL   Nodes differ in SERVICE_CLUSTER_LEASE_SECS: first 1, second 2')
    expect(stdout).toMatch(
      /NOT WELL {3}Nodes differ in SERVICE_ROOT_API_KEY: first a key marked [0-9a-f]{8}, second a key/,
    )
    expect(stdout.match(/Nodes differ in/g)).toHaveLength(3)
    await eventually(() => second.stderr().includes('nodes of the cluster have different settings'))
    expect(second.stderr()).toContain('Nodes differ in SERVICE_AUTH_ENABLED: first false, second true')
    expect(stdout).not.toContain('another-root-key')
    await second.halt()
    await first.halt()
  })

  it('shows a node that is silent, and a database whose commits wait', async () => {
    const first = await start('first')
    await shows(/first {3}SERVES/)
    await first.halt('SIGKILL')
    const silent = await status()
    expect(silent.status).toBe(1)
    expect(silent.stdout).toMatch(/^NOT WELL {3}The node first on 127\.0\.0\.1 is silent: it died/m)
    await standby.stop()
    const { stdout } = await shows(/No synchronous standby is connected to the database: commits wait/)
    expect(stdout).toContain('standbys   none connected')
    await standby.start()
    await shows(/standbys {3}walreceiver \(sync\)/)
    // A role without the right to see standbys is told so, and no trouble is made of it.
    await cluster.postgres.query('CREATE ROLE nodes LOGIN')
    await cluster.postgres.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO nodes')
    const url = cluster.postgres.url.replace('strandfast@', 'nodes@')
    const limited = await cluster.run(['cluster', 'status'], {
      SERVICE_CLUSTER_URL: url,
      SERVICE_CLUSTER_LEASE_SECS: '1',
    })
    expect(limited.stdout).toContain('standbys   unknown: the role may not see them')
    expect(limited.stdout).not.toContain('commits wait')
  })

  it('says that the database cannot be reached, with exit code 75', async () => {
    const url = 'postgres://strandfast@127.0.0.1:1/postgres'
    expect(await cluster.run(['cluster', 'status'], { SERVICE_CLUSTER_URL: url })).toMatchObject({
      status: 75,
    })
  })
})
