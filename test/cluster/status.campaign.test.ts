import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
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

  afterEach(() => cluster.killNodes())

  const start = (node: string, env: Record<string, string> = {}) =>
    cluster.start({ env: { SERVICE_CLUSTER_NODE: node, SERVICE_CLUSTER_LEASE_SECS: '1', ...env } })
  const status = () => cluster.run(['cluster', 'status'], { SERVICE_CLUSTER_LEASE_SECS: '1' })
  /** A linked standby answers like the owner; only its row shows that it is a standby. */
  const isReady = (server: TestServer) =>
    eventually(async () => (await call(server, 'GET /readyz')).status === 200)
  /** Waits until the status matches: a node publishes its report with the next heartbeat. */
  const shows = async (...expected: RegExp[]) => {
    let last = await status()
    await eventually(async () => {
      last = await status()
      return expected.every((one) => one.test(last.stdout))
    })
    return last
  }

  it('reports that no node is alive, with exit code 1', async () => {
    const shown = await shows(/PROBLEM {4}No node is alive/)
    expect(shown.status).toBe(1)
    expect(shown.stdout).toContain('no node has joined yet')
  })

  it('shows which node serves since when and where, standbys with their lag, and that all is well', async () => {
    const first = await start('first', { SERVICE_CLUSTER_ADVERTISE: 'https://first.example' })
    const second = await start('second')
    await isReady(second)
    const { status: code, stdout } = await shows(
      /second {2}standby, 1 copy/,
      /first {3}SERVES/,
      /copies at second/,
    )
    expect(stdout).toMatch(
      /^node {7}first {3}SERVES 1 shard since 20\S+Z, on https:\/\/first\.example, version \S+, joined 20\S+Z, lease 1 s$/m,
    )
    expect(stdout).toMatch(/^node {7}second {2}standby, 1 copy, \d\.\d s behind, on 127\.0\.0\.1, version/m)
    expect([stdout.split('\n').at(-2), code]).toEqual(['no problem found', 0])
    expect(stdout).toMatch(/^shard 0 {4}owned by first, copies at second; segment \d+, written by first;/m)
    // A standby leaves the cluster when it ends, so that no other node waits for its heartbeats.
    expect(await second.halt()).toBe(0)
    expect(await status()).toMatchObject({ status: 0, stdout: expect.stringMatching(/second {2}stopped/) })
    expect(await first.halt()).toBe(0)
  })

  it('names the settings in which nodes differ, as the log of the joining node does, and no secret', async () => {
    const first = await start('first')
    const second = await start('second', {
      SERVICE_AUTH_ENABLED: 'true',
      SERVICE_AUTH_ISSUER: 'https://second.example',
      SERVICE_RATE_LIMIT_RPS: '10',
      SERVICE_RECORD_MAX_BYTES: '262144',
      SERVICE_LOG_LEVEL: 'warn',
      SERVICE_ROOT_API_KEY: 'another-root-key-of-thirty-two-characters',
    })
    await isReady(second)
    const { status: code, stdout } = await shows(/first {3}SERVES/, /second {2}standby/)
    expect(code).toBe(1)
    for (const difference of [
      'SERVICE_AUTH_ENABLED: first not set, second true',
      'SERVICE_AUTH_ISSUER: first not set, second https://second.example',
      'SERVICE_RATE_LIMIT_RPS: first 0, second 10',
    ])
      expect(stdout).toContain(`PROBLEM    Nodes differ in ${difference}`)
    expect(stdout).toMatch(
      /PROBLEM {4}Nodes differ in SERVICE_ROOT_API_KEY: first marked [0-9a-f]{8}, second marked/,
    )
    expect(stdout.match(/Nodes differ in/g)).toHaveLength(4)
    await eventually(() => second.stderr().includes('nodes of the cluster have different settings or builds'))
    expect(second.stderr()).toContain('Nodes differ in SERVICE_AUTH_ENABLED: first not set, second true')
    expect(stdout).not.toContain('another-root-key')
    await second.halt()
    await first.halt()
  })

  it('shows a silent node, and a database whose commits wait', async () => {
    const first = await start('first')
    await shows(/first {3}SERVES/)
    await first.halt('SIGKILL')
    const silent = await status()
    expect(silent.status).toBe(1)
    expect(silent.stdout).toMatch(
      /^PROBLEM {4}The node first on 127\.0\.0\.1 sends no heartbeats: it has died/m,
    )
    await standby.stop()
    const { stdout } = await shows(/No synchronous standby is connected to the database: commits wait/)
    expect(stdout).toContain('standbys   none connected')
    await standby.start()
    await shows(/standbys {3}walreceiver \(sync\)/)
    // A role that may not see standbys gets a note, which is not a fault.
    await cluster.postgres.query('CREATE ROLE nodes LOGIN')
    await cluster.postgres.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO nodes')
    const url = cluster.postgres.url.replace('strandfast@', 'nodes@')
    const limited = await cluster.run(['cluster', 'status'], {
      SERVICE_CLUSTER_URL: url,
      SERVICE_CLUSTER_LEASE_SECS: '1',
    })
    expect(limited.stdout).toContain('standbys   unknown: the role may not list them')
    expect(limited.stdout).not.toContain('commits wait')
  })

  it('reports that the database cannot be reached, with exit code 75', async () => {
    const url = 'postgres://strandfast@127.0.0.1:1/postgres'
    expect(await cluster.run(['cluster', 'status'], { SERVICE_CLUSTER_URL: url })).toMatchObject({
      status: 75,
    })
  })
})
