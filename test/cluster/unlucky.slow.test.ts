import { mkdirSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { onSmallDisk, type SmallDisk, smallDiskMissing } from '../support/faults/small-disk.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const SHARDS = 6
/** Names that cover all shards. */
const agents = Array.from({ length: 24 }, (_none, n) => `agent-${n}`)
const preload = new URL('../support/faults/shifted-clock.mjs', import.meta.url).href
/** More than any disk has. */
const noDisk = `${2 ** 50}`

interface Shown {
  members: { node: string; owned_shards: number[] }[]
  problems: string[]
}

describe.skipIf(noPostgres)('a node that lacks something', () => {
  let cluster: ClusterOfOne
  const running: TestServer[] = []

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', `${SHARDS}`])).toMatchObject({ status: 0 })
  })
  afterAll(() => cluster?.remove())
  afterEach(async () => {
    for (const server of running.splice(0)) if (server.process.exitCode === null) await server.halt()
  })

  const settingsOf = (node: string) => ({
    SERVICE_CLUSTER_NODE: node,
    SERVICE_CLUSTER_LEASE_SECS: '1',
    SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
  })
  const start = async (
    node: string,
    { dataDir, ...env }: Record<string, string> = {},
    nodeOptions: readonly string[] = [],
  ) => {
    const server = await cluster.start({
      ...(dataDir !== undefined && { dataDir }),
      env: { ...settingsOf(node), ...env },
      nodeOptions,
    })
    running.push(server)
    return server
  }
  const shownBy = async (server: TestServer): Promise<Shown> =>
    (await call(server, 'GET /v1/server')).body.cluster ?? { members: [], problems: [] }
  const ownedBy = async (server: TestServer, node: string) =>
    (await shownBy(server)).members.find((member) => member.node === node)?.owned_shards.length
  /** Resolves when the nodes share all shards. */
  const areShared = (server: TestServer, nodes: number) =>
    eventually(async () => {
      const owned = (await shownBy(server)).members.map(({ owned_shards }) => owned_shards.length)
      return owned.length === nodes && owned.every((count) => count === SHARDS / nodes)
    })
  const writeAll = async (server: TestServer) => {
    const answers = []
    for (const agent of agents)
      answers.push(await call(server, `POST /v1/collections/${agent}/records`, { body: { data: {} } }))
    return answers.map(({ status, body }) => (status === 201 ? status : `${status} ${body.code}`))
  }
  const written = agents.map(() => 201)
  /** Starts a node with a clock that `set` moves. */
  const withClock = (shiftMs: number) => {
    const file = cluster.newPath('clock')
    const set = (ms: number) => {
      const bytes = Buffer.alloc(8)
      bytes.writeDoubleLE(ms)
      writeFileSync(file, bytes)
    }
    set(shiftMs)
    return { env: { TEST_CLOCK_SHIFT: file }, nodeOptions: ['--import', preload], set }
  }

  it('costs nothing if it owns nothing: a standby with a full disk', async () => {
    const [first, full] = [await start('first'), await start('full', { SERVICE_MIN_FREE_BYTES: noDisk })]
    await eventually(async () => (await shownBy(first)).problems.length > 0)
    for (const server of [first, full]) {
      expect(await writeAll(server)).toEqual(written)
      expect((await call(server, 'GET /readyz')).status).toBe(200)
    }
    const problem = 'The data disk of the node full is nearly full: other nodes take its shards'
    expect((await shownBy(full)).problems).toEqual([problem])
    const { status, stdout } = await cluster.run(['cluster', 'status'], settingsOf('first'))
    expect([status, stdout]).toEqual([1, expect.stringContaining(`PROBLEM    ${problem}`)])
  })

  it('refuses the writes to its shards at other nodes while no other can have them, but none that ends access', async () => {
    const lease = { SERVICE_CLUSTER_LEASE_SECS: '5' }
    const empty = await start('full', lease)
    const { body: made } = await call(empty, 'POST /v1/admin/api-keys', {
      body: { name: 'k', scopes: ['ingest'] },
    })
    await empty.halt()
    const { dataDir } = empty
    await start('full', { ...lease, dataDir, SERVICE_MIN_FREE_BYTES: noDisk })
    // It has links, and is ready for a share of the shards only after three leases.
    const other = await start('other', lease)
    await eventually(async () => (await call(other, 'GET /readyz')).status === 200)
    expect(new Set(await writeAll(other))).toEqual(new Set(['507 storage_full']))
    expect((await call(other, `DELETE /v1/admin/api-keys/${made.key_id}`)).status).toBe(200)
  })

  describe.skipIf(smallDiskMissing !== undefined)('because its disk fills', () => {
    let disk: SmallDisk

    afterAll(() => disk?.remove())

    it('hands its shards over, refuses only writes to them until then, and gets a share when there is space again', async () => {
      const dataDir = cluster.newPath('small')
      mkdirSync(dataDir)
      disk = onSmallDisk(dataDir, 512)
      const env = { dataDir, SERVICE_MIN_FREE_BYTES: `${128 * 1_048_576}` }
      const small = await start('small', env)
      const other = await start('other')
      await areShared(other, 2)
      disk.fill()
      const seen = new Set<number | string>()
      await eventually(async () => {
        for (const answer of await writeAll(other)) seen.add(answer)
        return (await ownedBy(other, 'small')) === 0
      })
      seen.delete(201)
      expect([...seen].filter((answer) => answer !== '507 storage_full')).toEqual([])
      for (const server of [small, other]) expect(await writeAll(server)).toEqual(written)
      expect((await call(small, 'GET /readyz')).status).toBe(200)
      disk.freeSpace()
      await areShared(other, 2)
      expect(await writeAll(other)).toEqual(written)
      for (const server of [small, other]) expect(await server.halt()).toBe(0)
    })
  })

  it('does not join with a clock two minutes ahead, and leaves when its clock jumps, before others must wait for it', async () => {
    const other = await start('other')
    const ahead = withClock(120_000)
    const refused = await cluster.run(['serve'], {
      ...settingsOf('ahead'),
      ...ahead.env,
      NODE_OPTIONS: ahead.nodeOptions.join(' '),
      SERVICE_DATA_DIR: cluster.newPath('data'),
      SERVICE_PORT: '0',
    })
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/the clock of this machine is 1\d\d\.\d s ahead of the database’s/),
    ])
    ahead.set(0)
    const joined = await start('ahead', ahead.env, ahead.nodeOptions)
    await areShared(other, 2)
    ahead.set(3_000)
    await eventually(async () => (await shownBy(other)).problems.length > 0)
    expect((await shownBy(other)).problems[0]).toMatch(/^The clock of the node ahead is 3\.0 s ahead of/)
    expect(await writeAll(other)).toEqual(written)
    const body = { name: 'for an hour', scopes: ['records:read'], expires_in_secs: 3_600 }
    const { key } = (await call(other, 'POST /v1/admin/api-keys', { body })).body
    await eventually(async () => (await call(joined, 'GET /v1/whoami', { key })).status === 200)
    ahead.set(86_400_000)
    const answers = new Set<number>()
    // It writes for as long as it can, and nothing from the future; nothing expires by its clock.
    await eventually(async () => {
      await call(joined, 'GET /v1/whoami', { key }).then(
        ({ status }) => answers.add(status),
        () => undefined,
      )
      await writeAll(joined).catch(() => undefined)
      return joined.process.exitCode !== null
    })
    expect(joined.process.exitCode).toBe(1)
    answers.delete(503)
    expect([...answers]).toEqual([200])
    expect(await writeAll(other)).toEqual(written)
  })

  it('does not join with another lease than that of a live node', async () => {
    await start('first')
    const refused = await cluster.run(['serve'], {
      ...settingsOf('second'),
      SERVICE_CLUSTER_LEASE_SECS: '2',
      SERVICE_DATA_DIR: cluster.newPath('data'),
      SERVICE_PORT: '0',
    })
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining('its SERVICE_CLUSTER_LEASE_SECS is 2, and 1 at the node first'),
    ])
  })
})
