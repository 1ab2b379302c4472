import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { statementsOf } from '../../src/outbound/cluster/statements.js'
import { chaos } from '../support/cluster/register-chaos.js'
import { RegisterRound } from '../support/cluster/register-rounds.js'
import { Rig } from '../support/cluster/rig.js'
import { extent } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { runSeed } from '../support/run-seed.js'

const statements = statementsOf('test')
/** Faults, one after another, and how often that is begun anew: in the long form for an hour. */
const faults = extent({ short: 3, ci: 5, full: 25 })
const series = Array.from({ length: extent({ short: 1, full: 40 }) }, (_none, nth) => nth)

/** The older one has the rounds of failover.test.ts. */
const majors = ([18, 15] as const).slice(0, extent({ short: 1, full: 2 }))

describe.skipIf(noPostgres).each(majors)('shards that two nodes fight for, on PostgreSQL %s', (major) => {
  let rig: Rig

  beforeAll(async () => {
    rig = await Rig.start(major)
    for (const statement of statements.create) await rig.primary.query(statement)
  })

  afterAll(async () => {
    await rig?.remove()
  })

  it.each(series)('lose nothing that was acknowledged, and stay one chain each: series %s', async (nth) => {
    const round = new RegisterRound(rig, { statements })
    const random = seededRandom(runSeed(`chaos of ${major}`) + major + 100 * nth)
    expect(await chaos(round, faults, random)).toEqual([])
    await round.close()
  })
})
