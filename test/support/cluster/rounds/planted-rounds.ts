import { runSeed } from '../../run-seed.js'
import { faultsNamed } from './faults.js'
import { plantedBuild, type PlantedBug } from './planted-build.js'
import { clusterRounds } from './rounds.js'

/** Rounds within which a bug has to be found, and those of one cluster, whose stores are compared behind the last of them. */
const [ROUNDS, OF_A_CLUSTER] = [30, 3]
/** A program with a bug may hang, which is found as well. */
const ROUND_MS = 60_000

/** What rounds find in a program with a bug. */
export async function breachesOf(bug: PlantedBug): Promise<string[]> {
  const build = plantedBuild(bug)
  const kinds = faultsNamed(bug.shownBy)
  const faults = Array.from({ length: Math.ceil(OF_A_CLUSTER / kinds.length) }, () => kinds).flat()
  const seed = runSeed(bug.name)
  try {
    for (let rounds = 0; rounds < ROUNDS; rounds += faults.length) {
      const making = {
        seed: seed + rounds,
        faults,
        program: build.program,
        linked: bug.linked === true,
        roundMs: ROUND_MS,
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
