import { runSeed } from '../../run-seed.js'
import { faultsNamed } from './faults.js'
import { plantedBuild, type PlantedBug } from './planted-build.js'
import { clusterRounds } from './rounds.js'

/**
 * Rounds within which a bug must be found, and rounds of one cluster, after which its stores are compared.
 */
const [ROUNDS, CLUSTER_ROUNDS] = [30, 3]
/** A program with a bug may hang, which counts as found. */
const ROUND_MS = 60_000

/** The breaches that rounds find in a program with a bug. */
export async function breachesOf(bug: PlantedBug): Promise<string[]> {
  const build = plantedBuild(bug)
  const kinds = faultsNamed(bug.shownBy)
  const faults = Array.from({ length: Math.ceil(CLUSTER_ROUNDS / kinds.length) }, () => kinds).flat()
  const seed = runSeed(bug.name)
  try {
    for (let rounds = 0; rounds < ROUNDS; rounds += faults.length) {
      const options = {
        seed: seed + rounds,
        faults,
        program: build.program,
        linked: bug.linked === true,
        roundMs: ROUND_MS,
        report: console.log,
      }
      const { breaches } = await clusterRounds(options)
      if (breaches.length > 0) return breaches
    }
    return []
  } finally {
    build.remove()
  }
}
