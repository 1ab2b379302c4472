import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LoadedNode, nodeSettings } from '../support/cluster/loaded-node.js'
import { missingPatroni, PatroniRig } from '../support/cluster/patroni.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'

if (missingPatroni !== undefined) console.warn(`Skipped: ${missingPatroni}`)

/** Longer than Patroni waits for a silent leader, several times. */
const TIMEOUT_MS = 300_000

const skipped = noPostgres || missingPatroni !== undefined

describe.skipIf(skipped)('a node with servers that Patroni manages', { timeout: TIMEOUT_MS }, () => {
  let rig: PatroniRig
  let node: LoadedNode

  beforeAll(async () => {
    rig = await PatroniRig.start()
    const created = await run(['cluster', 'init', '--shards', '2'], nodeSettings(rig.urls))
    expect(created).toMatchObject({ status: 0 })
    node = await LoadedNode.start(nodeSettings(rig.urls))
    await node.recovers()
  }, TIMEOUT_MS)

  afterEach(({ task }) => {
    const counts = new Map<string, number>()
    for (const { status, body } of node.refused) {
      const code = `${status} ${body?.code}`
      counts.set(code, (counts.get(code) ?? 0) + 1)
    }
    const refusals = [...counts].map(([code, count]) => `${code} ${count} times`).join(', ')
    console.log(`${task.name}: ${node.acknowledged.size} acknowledged in all; refused: ${refusals}`)
  })

  afterAll(async () => {
    await node?.stop()
    await rig?.remove()
  })

  it('recovers after a switchover', async () => {
    const before = await rig.leader()
    console.log(rig.switchover(before ?? ''))
    await rig.leads(before ?? '')
    await node.recovers()
    await rig.whole()
  })

  it('recovers after the primary and its Patroni are killed and return as a standby', async () => {
    const before = (await rig.leader()) ?? ''
    await rig.kill(before)
    await rig.leads(before)
    await node.recovers()
    rig.restart(before)
    await rig.whole()
    await node.recovers()
  })

  it('has lost no acknowledged write', async () => {
    expect(node.acknowledged.size).toBeGreaterThan(100)
    expect(await node.lost()).toEqual([])
    const codes = new Set(node.refused.map(({ status }) => status))
    expect([...codes].filter((status) => status !== 503)).toEqual([])
  })
})
