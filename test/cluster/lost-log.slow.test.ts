import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { knownEndPath, readKnownEnd } from '../../src/cluster/database/known-end.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call, type TestServer } from '../support/server/server.js'

const leaseSecs = '2'

const env = (node: string) => ({
  SERVICE_CLUSTER_NODE: node,
  SERVICE_CLUSTER_LEASE_SECS: leaseSecs,
  SERVICE_CLUSTER_LINK_ADDRESS: '127.0.0.1:0',
})

const serves = (server: TestServer) =>
  eventually(async () => (await call(server, 'GET /readyz')).status === 200)

async function lastSegmentOf({ postgres }: ClusterOfOne): Promise<number> {
  const [row] = await postgres.query<{ last: string }>(
    'SELECT max(segment) AS last FROM strandfast_segments WHERE shard = 0',
  )
  return Number(row?.last)
}

describe.skipIf(noPostgres)('a cluster whose database returns to an earlier state', () => {
  let cluster: ClusterOfOne
  let first: TestServer
  let second: TestServer

  const start = (node: string, dataDir?: string) =>
    cluster.start({ env: env(node), ...(dataDir !== undefined && { dataDir }) })
  const startRefused = (node: string, { dataDir }: TestServer) =>
    cluster.run(['serve', '--data-dir', dataDir, '--port', '0'], env(node))
  const accept = ({ dataDir }: TestServer, node: string, from: number) =>
    cluster.run(
      ['cluster', 'accept-loss', '--shard', '0', '--from', `${from}`, '--data-dir', dataDir],
      env(node),
    )
  const write = (server: TestServer, n: number) =>
    call(server, 'POST /v1/collections/notes/records', { body: { data: { n } } })
  const lastSegment = () => lastSegmentOf(cluster)
  const known = ({ dataDir }: TestServer) => readKnownEnd(knownEndPath(dataDir, 0))?.number

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
    expect(await cluster.run(['cluster', 'init', '--shards', '1'])).toMatchObject({ status: 0 })
    first = await start('first')
    await serves(first)
    second = await start('second')
    await serves(second)
  })

  afterAll(() => cluster?.remove())

  it('is refused by the nodes that know later segments, until each of them accepts the loss', async () => {
    expect((await write(first, 0)).status).toBe(201)
    const remaining = await lastSegment()
    expect((await write(first, 1)).status).toBe(201)
    // The writes at the start of a node may arrive late.
    await eventually(async () => known(first) === (await lastSegment()) && known(second) === known(first))
    const lost = await lastSegment()
    await first.halt('SIGKILL')
    await cluster.postgres.query(`DELETE FROM strandfast_segments WHERE segment > ${remaining}`)
    const knows = `this node knows segment ${lost} (`
    const has = `the cluster’s log ends with segment ${remaining} (`
    const command = `strandfast cluster accept-loss --shard 0 --from ${remaining + 1}`

    // At runtime, whether the node follows the log or takes the shard over.
    await eventually(async () => (await call(second, 'GET /readyz')).body.detail?.includes(knows))
    const refused = await write(second, 2)
    expect([refused.status, refused.body.code]).toEqual([503, 'unavailable'])
    for (const text of [knows, has, command]) expect(refused.body.detail).toContain(text)
    expect(second.stderr()).toContain('this node of the cluster refuses to serve')
    await eventually(async () => {
      const { status, stdout } = await cluster.run(['cluster', 'status'], env('second'))
      return (
        status === 1 && stdout.includes(`PROBLEM    The node second refuses to serve`) && stdout.includes(has)
      )
    })
    // Its lease has ended, although the database confirms its heartbeats.
    expect(second.stderr()).not.toContain('confirms no heartbeats')
    expect(await lastSegment()).toBe(remaining)
    expect(await second.halt()).toBe(0)

    // At a start.
    for (const [node, server] of [['first', first] as const, ['second', second] as const]) {
      const { status, stderr } = await startRefused(node, server)
      expect(status).toBe(78)
      for (const text of [knows, has, command]) expect(stderr).toContain(text)
    }
    const shown = await cluster.run(['cluster', 'status'], {
      ...env('first'),
      SERVICE_DATA_DIR: first.dataDir,
    })
    expect([shown.status, shown.stdout.includes(knows)]).toEqual([1, true])

    expect(await accept(first, 'first', remaining)).toMatchObject({
      status: 78,
      stderr: expect.stringContaining(`Expected --from ${remaining + 1}`),
    })
    expect(await accept(first, 'first', remaining + 1)).toMatchObject({ status: 0 })
    expect((await accept(first, 'first', remaining + 1)).status).toBe(1)
    first = await start('first', first.dataDir)
    await serves(first)
    expect((await write(first, 3)).status).toBe(201)
    const { text } = await call(first, 'GET /v1/strand/export?agent=server::audit')
    const records = text.split('\n').filter((line) => line.includes('sys/loss_accepted'))
    expect(records).toHaveLength(1)
    expect(JSON.parse(JSON.parse(records[0] ?? '').body)).toMatchObject({
      node: 'first',
      shard: 0,
      from_segment: remaining + 1,
      known: { segment: lost },
      there: { segment: remaining },
    })

    // The second node knows a number at which the log now has a different segment.
    await eventually(async () => (await lastSegment()) > lost)
    const again = await startRefused('second', second)
    expect(again.status).toBe(78)
    expect(again.stderr).toContain(`the cluster’s log has a different segment ${lost} (`)
    expect(await accept(second, 'second', lost)).toMatchObject({ status: 0 })
    second = await start('second', second.dataDir)
    await serves(second)
    expect((await write(second, 4)).status).toBe(201)
    expect(await second.halt()).toBe(0)
  })

  it('ends the process of an owner with its next write', async () => {
    await eventually(async () => (await write(first, 5)).status === 201)
    const last = await lastSegment()
    const ended = once(first.process, 'exit')
    await cluster.postgres.query(`DELETE FROM strandfast_segments WHERE segment = ${last}`)
    await write(first, 6).catch(() => undefined)
    await ended
    // The process kills itself if a thread is writing to LMDB.
    expect([1, 'SIGKILL']).toContain(first.process.exitCode ?? first.process.signalCode)
    expect(first.stderr()).toMatch(
      /"level":"fatal".*has lost what it had acknowledged\. Shard 0 has lost durable segments: this node knows segment/,
    )
    expect((await startRefused('first', first)).status).toBe(78)
  })
})

describe.skipIf(noPostgres)('a shard whose log is cut back to where its owner once closed it', () => {
  it('is not opened by a node without its store while its owner serves over a link', async () => {
    const cluster = await makeClusterOfOne()
    const lastSegment = () => lastSegmentOf(cluster)
    try {
      await cluster.run(['cluster', 'init', '--shards', '1'])
      let owner = await cluster.start({ env: env('a') })
      await serves(owner)
      expect(await owner.halt()).toBe(0)
      const closed = await lastSegment()
      owner = await cluster.start({ env: env('a'), dataDir: owner.dataDir })
      await serves(owner)
      // The writes at the start of a node may arrive late.
      await eventually(
        async () => readKnownEnd(knownEndPath(owner.dataDir, 0))?.number === (await lastSegment()),
      )
      await cluster.postgres.query(`DELETE FROM strandfast_segments WHERE segment > ${closed}`)
      const other = await cluster.start({ env: env('b') })
      await serves(other)
      expect(await lastSegment()).toBe(closed)
      // With its next write the owner finds the loss, and ends or refuses to serve.
      await call(other, 'POST /v1/collections/notes/records', { body: { data: { n: 1 } } })
      await eventually(async () => (await lastSegment()) > closed)
      expect((await call(owner, 'GET /readyz').catch(() => undefined))?.status ?? 503).toBe(503)
      await serves(other)
    } finally {
      await cluster.remove()
    }
  })
})
