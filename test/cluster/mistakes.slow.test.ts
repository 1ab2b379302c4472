// @run first
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { dealMistakes } from '../support/cluster/rounds/mistakes.js'
import { clusterRounds } from '../support/cluster/rounds/rounds.js'
import { count } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { roundsOf, runSeed } from '../support/run-seed.js'

/** A round takes about ten seconds, and a campaign has many passes. */
const ROUNDS = Math.min(roundsOf(6), 10)
/** Time limit of a round on a busy machine, milliseconds. */
const ROUND_MS = 90_000

describe.skipIf(noPostgres)('three nodes of a cluster under load', () => {
  it(
    'keep what they answered and show nothing else, whatever their operators do by mistake',
    async () => {
      const seed = runSeed('mistakes of operators')
      const faults = dealMistakes(ROUNDS, seededRandom(seed))
      const { breaches, ends } = await clusterRounds({ seed, faults, linked: true, report: console.log })
      if (breaches.length > 0) console.log(ends.join('\n'))
      expect(breaches).toEqual([])
      count({ mistakes: ROUNDS })
    },
    ROUNDS * ROUND_MS,
  )
})
