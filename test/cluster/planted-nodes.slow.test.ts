// @run first
import { describe, expect, it } from 'vitest'
import { faultsNamed } from '../support/cluster/rounds/faults.js'
import { plantedBugs, plantedBuild, type PlantedBug } from '../support/cluster/rounds/planted-build.js'
import { clusterRounds } from '../support/cluster/rounds/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { runSeed } from '../support/run-seed.js'

/** Rounds within which a bug has to be found, and those of one cluster, whose stores are compared behind the last of them. */
const [ROUNDS, AT_ONCE] = [30, 3]

/** What rounds find in a program with a bug. */
async function breachesOf(bug: PlantedBug): Promise<string[]> {
  const build = plantedBuild(bug)
  const kinds = faultsNamed(bug.shownBy)
  const faults = Array.from({ length: Math.ceil(AT_ONCE / kinds.length) }, () => kinds).flat()
  const ofBug = runSeed(bug.name)
  try {
    for (let rounds = 0; rounds < ROUNDS; rounds += faults.length) {
      const making = {
        seed: ofBug + rounds,
        faults,
        program: build.program,
        linked: bug.linked === true,
        report: console.log,
      }
      const { breaches } = await clusterRounds(making)
      if (breaches.length > 0) return breaches
    }
    return []
  } finally {
    build.remove()
  }
}

/*
 * Bugs of the log's statements, and of membership, are planted where these are tested: in failover.slow.test.ts
 * (planted-faults.ts), and in test/unit/dispatch/membership.test.ts.
 */
describe.skipIf(noPostgres)('rounds of three nodes', () => {
  it.each(plantedBugs)(
    'find $name',
    async (bug) => {
      const breaches = await breachesOf(bug)
      console.log(`${bug.name}: ${breaches[0]}`)
      expect(breaches).not.toEqual([])
    },
    900_000,
  )
})
