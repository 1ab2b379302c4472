import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cutOff, formerHeadsRoot, makeFormerCluster } from '../support/cluster/former-cluster.js'
import { eventually } from '../support/eventually.js'
import { type ClusterOfOne, makeClusterOfOne } from '../support/postgres/cluster-of-one.js'
import { noPostgres } from '../support/postgres/postgres.js'

const ROUNDS = 24
/** How long a round may take on a busy machine, milliseconds. */
const ROUND_MS = 60_000

describe.skipIf(noPostgres)('an interrupted upgrade', () => {
  let cluster: ClusterOfOne

  beforeAll(async () => {
    cluster = await makeClusterOfOne()
  })

  afterAll(() => cluster?.remove())

  const format = async () =>
    (await cluster.postgres.query('SELECT format FROM strandfast_cluster'))[0]?.['format']

  it(
    'is completed by a second run, whenever it was interrupted, with all records',
    async () => {
      const formats = new Set<unknown>()
      /** How long an upgrade takes at present: the first one is cut off at its start. */
      let wholeMs = 0
      for (let round = 0; round < ROUNDS; round++) {
        await makeFormerCluster(cluster.postgres)
        const target = cluster.newPath('cut')
        // However long it takes on a busy machine, one is cut off behind its last commit.
        await cutOff(cluster, target, () =>
          round === ROUNDS - 1
            ? eventually(async () => (await format()) === 2)
            : delay((1.1 * wholeMs * round) / ROUNDS),
        )
        const left = await format()
        formats.add(left)
        const startedMs = performance.now()
        const again = await cluster.run(['cluster', 'upgrade', target])
        if (left === 1) wholeMs = performance.now() - startedMs
        expect(again.status, again.stderr).toBe(0)
        const { stdout } = await cluster.run(['cluster', 'pull', cluster.newPath('pulled')])
        expect(stdout, `round ${round}`).toContain(formerHeadsRoot)
      }
      expect([...formats].sort()).toEqual([1, 2])
    },
    ROUNDS * ROUND_MS,
  )
})
