import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LoadedNode, nodeSettings } from '../support/cluster/loaded-node.js'
import { missingPatroni, PatroniRig } from '../support/cluster/patroni.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { run } from '../support/server/command.js'

if (missingPatroni !== undefined) console.warn(`Skipped: ${missingPatroni}`)

/** Longer than Patroni lets a leader be silent, and more than once. */
const PATIENCE_MS = 300_000

const left = noPostgres || missingPatroni !== undefined

describe.skipIf(left)('a node over servers that Patroni runs', { timeout: PATIENCE_MS }, () => {
  let rig: PatroniRig
  let node: LoadedNode

  beforeAll(async () => {
    rig = await PatroniRig.start()
    const made = await run(['cluster', 'init', '--shards', '2'], nodeSettings(rig.urls))
    expect(made).toMatchObject({ status: 0 })
    node = await LoadedNode.start(nodeSettings(rig.urls))
    await node.goesOn()
  }, PATIENCE_MS)

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

  it('goes on by itself after a switchover', async () => {
    const before = await rig.leader()
    console.log(rig.switchover(before ?? ''))
    await rig.leads(before ?? '')
    await node.goesOn()
    await rig.whole()
  })

  it('goes on by itself after the primary is killed with its Patroni, which comes back as a standby', async () => {
    const before = (await rig.leader()) ?? ''
    await rig.kill(before)
    await rig.leads(before)
    await node.goesOn()
    rig.restart(before)
    await rig.whole()
    await node.goesOn()
  })

  it('has lost nothing that it acknowledged', async () => {
    expect(node.acknowledged.size).toBeGreaterThan(100)
    expect(await node.lost()).toEqual([])
    const codes = new Set(node.refused.map(({ status }) => status))
    expect([...codes].filter((status) => status !== 503)).toEqual([])
  })
})
