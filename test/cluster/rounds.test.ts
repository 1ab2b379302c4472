import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { deal } from '../support/cluster/rounds/deck.js'
import { clusterRounds } from '../support/cluster/rounds/rounds.js'
import { extent, sideBySide } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { runSeed } from '../support/run-seed.js'

const rounds = extent({ short: 4, ci: 42, full: 1_050 })
/** How long a round may take on a busy machine, milliseconds. */
const ROUND_MS = 60_000

describe.skipIf(noPostgres)('three nodes of a cluster under load', () => {
  it(
    'keep what they answered and show nothing else, whatever is killed, stopped, cut off and promoted',
    async () => {
      const seed = runSeed('rounds of a cluster')
      const found = await sideBySide(rounds, (share, nth) => {
        const faults = deal(share, seededRandom(seed + nth))
        return clusterRounds({ seed: seed + nth, faults, report: (line) => console.log(`${nth}: ${line}`) })
      })
      const breaches = found.flatMap((series) => series.breaches)
      if (breaches.length > 0) console.log(found.flatMap(({ ends }) => ends).join('\n'))
      expect(breaches.slice(0, 20)).toEqual([])
    },
    rounds * ROUND_MS,
  )
})
