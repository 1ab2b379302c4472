import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutOff, formerHeadsRoot, makeFormerCluster } from '../support/cluster/former-cluster.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'

const ROUNDS = 24

describe.skipIf(noPostgres)('an upgrade that is cut off', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
  })

  afterAll(() => cluster?.remove())

  it('is done by being run again, whenever that was, and all records are there', async () => {
    await makeFormerCluster(cluster.postgres)
    const startedMs = performance.now()
    await cutOff(cluster, cluster.place('whole'), () => new Promise(() => {}))
    const wholeMs = performance.now() - startedMs
    const formats = new Set<unknown>()
    for (let round = 0; round < ROUNDS; round++) {
      await makeFormerCluster(cluster.postgres)
      const target = cluster.place('cut')
      await cutOff(cluster, target, () => delay((1.1 * wholeMs * round) / ROUNDS))
      const [row] = await cluster.postgres.query('SELECT format FROM strandfast_cluster')
      formats.add(row?.['format'])
      const again = await cluster.run(['cluster', 'upgrade', target])
      expect(again.status, again.stderr).toBe(0)
      const { stdout } = await cluster.run(['cluster', 'pull', cluster.place('pulled')])
      expect(stdout, `round ${round}`).toContain(formerHeadsRoot)
    }
    expect([...formats].sort()).toEqual([1, 2])
  })
})
