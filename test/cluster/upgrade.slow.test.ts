import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cutOff, formerHeadsRoot, makeFormerCluster } from '../support/cluster/former-cluster.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { call } from '../support/server/server.js'

describe.skipIf(noPostgres)('strandfast cluster upgrade', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
  })

  afterAll(() => cluster?.remove())

  beforeEach(() => makeFormerCluster(cluster.postgres))

  const upgrade = (target: string) => cluster.run(['cluster', 'upgrade', target])
  const query = (text: string) => cluster.postgres.query(text)
  const format = async () => (await query('SELECT format FROM strandfast_cluster'))[0]?.['format']
  const pulledRoot = async () => {
    const { stdout } = await cluster.run(['cluster', 'pull', cluster.newPath('pulled')])
    return /heads root +([0-9a-f]{64})/.exec(stdout)?.[1]
  }
  const segmentsWith = async (text: string) => {
    const like = 'SELECT 1 FROM strandfast_segments WHERE position($1::bytea IN blocks) > 0'
    return (await cluster.postgres.query(like, [Buffer.from(text)])).length
  }

  it('converts a cluster with all its records and without its erased bodies, and the cluster continues', async () => {
    const hint =
      /format 1, and this program reads format 2: stop all nodes and run strandfast cluster upgrade/
    expect(await cluster.run(['serve'])).toMatchObject({ status: 78, stderr: expect.stringMatching(hint) })
    expect(await cluster.run(['cluster', 'pull', cluster.newPath('pulled')])).toMatchObject({
      status: 78,
      stderr: expect.stringMatching(hint),
    })
    // A refused pull leaves the directory unchanged.
    const occupied = cluster.newPath('occupied')
    mkdirSync(join(occupied, 'shard-0'), { recursive: true })
    expect(await cluster.run(['cluster', 'pull', occupied])).toMatchObject({ status: 78 })
    expect(existsSync(join(occupied, 'shard-0'))).toBe(true)
    const target = cluster.newPath('upgrade')
    const { status, stdout, stderr } = await upgrade(target)
    expect([status, stdout], stderr).toEqual([0, expect.stringContaining(`heads root  ${formerHeadsRoot}`)])
    expect(await pulledRoot()).toBe(formerHeadsRoot)
    const bodies = [
      'an early body to forget',
      'a body to forget',
      'an early body that stays',
      'a body that stays',
    ]
    expect(await Promise.all(bodies.map(segmentsWith))).toEqual([0, 0, 1, 1])
    const left = await query("SELECT tablename FROM pg_tables WHERE tablename LIKE 'strandfast_next%'")
    expect(left).toEqual([])
    const node = await cluster.start()
    const written = await call(node, 'POST /v1/collections/written/records', {
      body: { data: { text: 'more' } },
    })
    expect(written.status).toBe(201)
    expect(await node.halt()).toBe(0)
    // A second upgrade has nothing to do.
    expect(await upgrade(target)).toMatchObject({
      status: 0,
      stdout: expect.not.stringContaining('Upgraded'),
    })
    expect(existsSync(join(target, 'cluster-upgrade'))).toBe(false)
  })

  it('changes nothing if a record does not match its hash', async () => {
    const body = Buffer.from('an early body that stays')
    const at = `position('\\x${body.toString('hex')}'::bytea IN blocks)`
    const change = `UPDATE strandfast_segments SET blocks = set_byte(blocks, ${at} + 3, 65) WHERE ${at} > 0`
    await query(change)
    const { status, stderr } = await upgrade(cluster.newPath('upgrade'))
    expect([status, stderr]).toEqual([1, expect.stringContaining('The upgrade failed')])
    expect(await format()).toBe(1)
  })

  it('changes nothing while a node runs, and waits for a killed node', async () => {
    await query('UPDATE strandfast_nodes SET alive = true')
    const heartbeats = setInterval(() => void query('UPDATE strandfast_nodes SET beat = beat + 1'), 200)
    const target = cluster.newPath('upgrade')
    const running = await upgrade(target)
    clearInterval(heartbeats)
    expect(running).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/nodes of the cluster are running \(/),
    })
    expect(await format()).toBe(1)
    expect(await upgrade(target)).toMatchObject({ status: 0 })
    expect(await format()).toBe(2)
  })

  it('is completed by a second run after an interruption', async () => {
    const target = cluster.newPath('upgrade')
    const statement = 'SELECT 1 FROM strandfast_next_checkpoints'
    // An open read of a table prevents its replacement.
    const reader = await cluster.postgres.connect()
    await reader.query('BEGIN; SELECT 1 FROM strandfast_nodes')
    // The table is not there at first.
    const isBegun = async () => (await query(statement).catch(() => [])).length > 0
    await cutOff(cluster, target, () => eventually(isBegun))
    await reader.end()
    expect(await format()).toBe(1)
    const { status, stderr } = await upgrade(target)
    expect(status, stderr).toBe(0)
    expect(await pulledRoot()).toBe(formerHeadsRoot)
  })
})
