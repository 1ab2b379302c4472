// @run first
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { deal } from '../support/cluster/rounds/deck.js'
import type { Fault } from '../support/cluster/rounds/fault.js'
import { clusterRounds } from '../support/cluster/rounds/rounds.js'
import { count, sideBySide } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { roundsOf, runSeed } from '../support/run-seed.js'

/** A round takes four to eight seconds. */
const ROUNDS = roundsOf(12)
/** Rounds on one cluster, after which its stores are compared. */
const LIFE_ROUNDS = 25
/** Time limit of a round on a busy machine, milliseconds. */
const ROUND_MS = 60_000

/** Runs rounds on clusters, one after another, until one has a breach. */
async function series(faults: readonly Fault[], seed: number, linked: boolean): Promise<string[]> {
  for (let first = 0; first < faults.length; first += LIFE_ROUNDS) {
    const batch = faults.slice(first, first + LIFE_ROUNDS)
    const found = await clusterRounds({ seed: seed + first, faults: batch, linked, report: console.log })
    if (found.breaches.length === 0) continue
    console.log(found.ends.join('\n'))
    return found.breaches
  }
  return []
}

describe.skipIf(noPostgres)('three nodes of a cluster under load', () => {
  it(
    'keep what they answered and show nothing else, whatever is killed, stopped, cut off and promoted',
    async () => {
      const seed = runSeed('rounds of a cluster')
      // One of the two series runs without links, like nodes that cannot reach each other.
      const found = await sideBySide(ROUNDS, (share, nth) =>
        series(deal(share, seededRandom(seed + nth), nth === 0), seed + nth, nth === 0),
      )
      expect(found.flat().slice(0, 20)).toEqual([])
      count({ rounds: ROUNDS })
    },
    ROUNDS * ROUND_MS,
  )
})
