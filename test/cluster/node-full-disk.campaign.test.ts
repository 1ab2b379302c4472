import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LoadedNode, nodeSettings } from '../support/cluster/loaded-node.js'
import { eventually } from '../support/eventually.js'
import { onSmallDisk, type SmallDisk, smallDiskMissing } from '../support/faults/small-disk.js'
import { makePostgres, noPostgres, type TestPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'

const MEGABYTES = 160

describe.skipIf(noPostgres || smallDiskMissing !== undefined)('a node with a full database disk', () => {
  let postgres: TestPostgres
  let disk: SmallDisk
  let node: LoadedNode

  beforeAll(async () => {
    postgres = await makePostgres({ settings: { fsync: 'on' } })
    disk = onSmallDisk(postgres.data, MEGABYTES)
    await postgres.start()
    const init = await run(['cluster', 'init', '--shards', '2'], nodeSettings([postgres.url]))
    expect(init).toMatchObject({ status: 0 })
  })

  afterAll(async () => {
    await node?.stop()
    await postgres?.kill()
    disk?.remove()
    await postgres?.remove()
  })

  it('acknowledges nothing while the disk is full, and has all acknowledged writes when there is space again', async () => {
    node = await LoadedNode.start(nodeSettings([postgres.url]))
    await node.recovers()
    disk.fill()
    await eventually(async () => (await node.ready()).status === 503)
    const { size } = node.acknowledged
    const { length } = node.refused
    await eventually(() => node.refused.length > length + 20)
    expect(node.acknowledged.size).toBe(size)
    disk.freeSpace()
    // PostgreSQL may have ended, if it had no space for its write-ahead log.
    await postgres.start()
    await node.recovers()
    expect(await node.lost()).toEqual([])
    for (const { status, headers } of node.refused)
      expect([status, headers.get('content-type')]).toEqual([503, 'application/problem+json'])
    console.log(
      node.server
        .stderr()
        .split('\n')
        .map((l) => l.slice(0, 300))
        .join('\n'),
    )
    expect(await node.server.halt()).toBe(0)
  })
})
