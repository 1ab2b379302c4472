import { describe, expect, it } from 'vitest'
import { HostileCluster } from '../support/cluster/hostile/hostile-cluster.js'
import { hostileRounds } from '../support/cluster/hostile/rounds.js'
import { count } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { roundsOf, runSeed } from '../support/run-seed.js'

/** A round takes one to ten seconds. */
const ROUNDS = roundsOf(4)
/** How long a round may take on a busy machine, milliseconds. */
const ROUND_MS = 90_000
const SETUP_MS = 120_000

describe.skipIf(noPostgres)(
  'nodes whose database is controlled by an attacker without the master seed',
  () => {
    it(
      'serve what clients were answered, or refuse, whatever is done to the tables',
      async () => {
        const seed = runSeed('a hostile database')
        const hostile = await HostileCluster.make()
        try {
          expect(await hostileRounds(hostile, { rounds: ROUNDS, seed, report: console.log })).toEqual([])
        } finally {
          await hostile.remove()
        }
        count({ changedDatabases: ROUNDS })
      },
      SETUP_MS + ROUNDS * ROUND_MS,
    )
  },
)
