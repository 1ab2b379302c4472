import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../scripts/crash-loop/seeded-random.mjs'
import { statementsOf } from '../../src/cluster/database/statements.js'
import { chaos } from '../support/cluster/register-chaos.js'
import { RegisterRound } from '../support/cluster/register-rounds.js'
import { Rig } from '../support/cluster/rig.js'
import { count } from '../support/faults/rounds.js'
import { noPostgres } from '../support/postgres/postgres.js'
import { runSeed } from '../support/run-seed.js'

const statements = statementsOf('test')
/** Number of faults, one after another. */
const FAULTS = 3

/** failover.slow.test.ts covers PostgreSQL 15. */
const major = 18

describe.skipIf(noPostgres)(`shards for which two nodes compete, on PostgreSQL ${major}`, () => {
  let rig: Rig

  beforeAll(async () => {
    rig = await Rig.start(major)
    for (const statement of statements.create) await rig.primary.query(statement)
  })

  afterAll(async () => {
    await rig?.remove()
  })

  it('lose no acknowledged segment, and remain one chain each', async () => {
    const round = new RegisterRound(rig, { statements })
    const random = seededRandom(runSeed(`chaos of ${major}`) + major)
    expect(await chaos(round, FAULTS, random)).toEqual([])
    await round.close()
    count({ registerFaults: FAULTS })
  })
})
