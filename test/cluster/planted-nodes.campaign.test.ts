// @run first
import { describe, expect, it } from 'vitest'
import { plantedBugs } from '../support/cluster/rounds/planted-build.js'
import { breachesOf } from '../support/cluster/rounds/planted-rounds.js'
import { count } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'

/*
 * Most of these bugs show within thirty rounds; the test of a single part finds each of them quickly
 * (planted-build.ts). Bugs in the log's statements and in membership are planted where these are tested: in
 * failover.slow.test.ts (planted-faults.ts) and in test/unit/cluster/members/membership.test.ts.
 */
describe.skipIf(noPostgres)('rounds of three nodes', () => {
  it.each(plantedBugs)(
    "find '$name'",
    async (bug) => {
      const breaches = await breachesOf(bug)
      console.log(`${bug.name}: ${breaches[0]}`)
      expect(breaches).not.toEqual([])
      count({ plantedBugs: 1 })
    },
    900_000,
  )
})
