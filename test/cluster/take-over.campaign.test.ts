import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { metricsNow } from '../support/http/metrics.js'
import { call, type TestServer } from '../support/server/server.js'

/** Nodes without links to each other: a standby answers nothing. */
const unlinked = { SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:1' }

describe.skipIf(noPostgres)('nodes of a cluster that have no links', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '3'])).toMatchObject({ status: 0 })
  })

  afterAll(() => cluster?.remove())
  afterEach(() => cluster.killNodes())

  const own = (node: string) => ({
    SERVICE_CLUSTER_NODE: node,
    SERVICE_CLUSTER_LEASE_SECS: '1',
    ...unlinked,
  })
  const start = (node: string, dataDir?: string) =>
    cluster.start({
      env: own(node),
      ...(dataDir !== undefined && { dataDir }),
    })
  const write = (server: TestServer, agent: string, text: string) =>
    call(server, `POST /v1/collections/${agent}/records`, { body: { data: { text } } })
  const serves = (server: TestServer) =>
    eventually(async () => (await call(server, 'GET /readyz')).status === 200)
  const metric = async (server: TestServer, name: string) =>
    new RegExp(`^${name} (\\S+)$`, 'm').exec((await call(server, 'GET /metrics')).text)?.[1]
  const ended = ({ process }: TestServer) => new Promise((resolve) => process.once('exit', resolve))
  /** Writes to many agents until the server is down. @returns hashes that were answered, with their agents */
  const writeUntilDown = async (server: TestServer, answered: Map<string, string>) => {
    for (let n = 0; ; n++) {
      const agent = `many-${n % 12}`
      const answer = await write(server, agent, `${n}`).catch(() => undefined)
      if (answer === undefined) return
      if (answer.status === 201) answered.set(answer.body.content_hash, agent)
    }
  }
  const missing = async (server: TestServer, answered: ReadonlyMap<string, string>) => {
    const lost: string[] = []
    for (const [hash, agent] of answered) {
      const { status } = await call(server, `GET /v1/agents/${agent}/records/${hash}`)
      if (status !== 200) lost.push(`${agent} ${hash}: ${status}`)
    }
    return lost
  }

  it('are standbys while one of them serves, and say so', async () => {
    const [first, second] = [await start('first'), await start('second')]
    expect((await call(second, 'GET /healthz')).status).toBe(200)
    await eventually(async () => (await call(second, 'GET /readyz')).body.detail?.includes('first'))
    const refused = await write(second, 'notes', 'to the wrong one')
    expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'unavailable',
      '1',
    ])
    expect(refused.body.detail).toMatch(
      /^This node of the cluster is a standby: the node first on .* serves$/,
    )
    const metrics = await metricsNow(() => call(second, 'GET /metrics'))
    expect(metrics).toContain('strandfast_cluster_serving 0')
    expect(metrics).toContain('strandfast_cluster_members 2')
    expect(await metricsNow(() => call(first, 'GET /metrics'))).toContain('strandfast_cluster_serving 1')
    expect(await second.halt()).toBe(0)
    expect(await first.halt()).toBe(0)
  })

  it('take over from a killed node with every answered write, and that node is a standby when it returns', async () => {
    const [first, second] = [await start('first'), await start('second')]
    const answered = new Map<string, string>()
    const writers = Array.from({ length: 6 }, () => writeUntilDown(first, answered))
    await eventually(() => answered.size > 300)
    await first.halt('SIGKILL')
    await Promise.all(writers)
    await serves(second)
    expect(await missing(second, answered)).toEqual([])
    expect((await write(second, 'many-1', 'by the second')).status).toBe(201)
    const again = await start('first', first.dataDir)
    expect((await call(again, 'GET /readyz')).status).toBe(503)
    // It has followed the writes of the second node, which transfers its shards in order.
    expect((await write(second, 'many-2', 'followed')).status).toBe(201)
    const { body } = await call(second, 'GET /v1/agents/many-2/head')
    expect(await second.halt()).toBe(0)
    await serves(again)
    expect((await call(again, 'GET /v1/agents/many-2/head')).body.chain_head).toBe(body.chain_head)
    expect(await again.halt()).toBe(0)
  })

  it('end if they were stopped for so long that another node has taken over', async () => {
    const [first, second] = [await start('first'), await start('second')]
    expect((await write(first, 'notes', 'before')).status).toBe(201)
    const exited = ended(first)
    first.process.kill('SIGSTOP')
    await serves(second)
    expect((await write(second, 'notes', 'by the second')).status).toBe(201)
    first.process.kill('SIGCONT')
    await exited
    // The process kills itself if a thread is writing to LMDB.
    expect([1, 'SIGKILL']).toContain(first.process.exitCode ?? first.process.signalCode)
    expect(first.stderr()).toMatch(/has expelled this one|has taken it/)
    expect((await write(second, 'notes', 'and on')).status).toBe(201)
    expect(await second.halt()).toBe(0)
  })

  it('end when their rows were changed, even in the middle of following a log', async () => {
    // With a longer lease, neither node expels the other on a slow machine.
    const lease = { SERVICE_CLUSTER_LEASE_SECS: '10' }
    const first = await cluster.start({ env: { ...own('first'), ...lease } })
    const hang = cluster.newPath('hang')
    const second = await cluster.start({
      nodeOptions: ['--import', new URL('../support/faults/hanging-thread.mjs', import.meta.url).href],
      env: { ...own('second'), ...lease, TEST_HANG_FILE: hang },
    })
    await eventually(async () => (await call(second, 'GET /readyz')).body.detail?.includes('first'))
    const exited = ended(second)
    writeFileSync(hang, 'transaction follower')
    // From now on the second node misses all writes of the first.
    await write(first, 'notes', 'followed')
    await eventually(async () => Number(await metric(second, 'strandfast_cluster_lag_seconds')) > 1)
    // On a slow machine a copy is as late while its thread does not hang; then the process exits with 1.
    await eventually(() => existsSync(`${hang}.hangs`))
    await cluster.postgres.query("UPDATE strandfast_nodes SET alive = false WHERE node = 'second'")
    await exited
    expect(second.process.signalCode).toBe('SIGKILL')
    expect(second.stderr()).toContain('the row of this node in the database of the cluster does not verify')
    expect(await first.halt()).toBe(0)
  })

  it('rebuild a lost store while they are standbys, and take over with it', async () => {
    const first = await start('first')
    const answered = new Map<string, string>()
    const writer = writeUntilDown(first, answered)
    const second = await start('second')
    await eventually(async () => (await call(second, 'GET /readyz')).body.detail?.includes('first'))
    await second.halt('SIGKILL')
    rmSync(second.dataDir, { recursive: true })
    const third = await start('third', second.dataDir)
    await eventually(() => answered.size > 100)
    await first.halt('SIGKILL')
    await writer
    await serves(third)
    expect(await missing(third, answered)).toEqual([])
    expect(await third.halt()).toBe(0)
  })

  it('serve one at a time out of three, whichever is killed', async () => {
    const names = ['first', 'second', 'third']
    const nodes = await Promise.all(names.map((name) => start(name)))
    const answered = new Map<string, string>()
    let left = [...nodes]
    for (let deaths = 0; deaths < 2; deaths++) {
      const serving = async () => {
        const ready = await Promise.all(
          left.map(async (one) => (await call(one, 'GET /readyz')).status === 200),
        )
        return left.filter((_one, nth) => ready[nth])
      }
      await eventually(async () => (await serving()).length > 0)
      const [owner, ...others] = await serving()
      expect(others).toEqual([])
      if (owner === undefined) return
      expect(await missing(owner, answered)).toEqual([])
      const before = answered.size
      const writers = [writeUntilDown(owner, answered), writeUntilDown(owner, answered)]
      await eventually(() => answered.size > before + 50)
      await owner.halt('SIGKILL')
      await Promise.all(writers)
      left = left.filter((one) => one !== owner)
    }
    const [last] = left
    if (last === undefined) throw new Error('Expected one node to be left')
    await serves(last)
    expect(await missing(last, answered)).toEqual([])
    expect(await last.halt()).toBe(0)
  })
})
