import { describe, expect, it } from 'vitest'
import { LEASE_MARGIN } from '../../../../src/cluster/members/lease.js'
import {
  LEASE_MS,
  simulate,
  type SimulatedEnd,
  type TableRules,
} from '../../../support/cluster/simulated-members.js'
import { fc } from '../../../support/fast-check.js'

const rules: TableRules = { expelsOnlyTheHeartbeatSeen: true }

const simulations = (ratesMax: number) =>
  fc.record({
    rates: fc.array(fc.double({ min: 1, max: ratesMax, noNaN: true }), { minLength: 2, maxLength: 4 }),
    tripMs: fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40 }),
    troubles: fc.array(
      fc.record({
        kind: fc.constantFrom('stopped' as const, 'cutOff' as const, 'allCutOff' as const),
        node: fc.integer({ min: 0, max: 3 }),
        fromMs: fc.integer({ min: 0, max: 8 * LEASE_MS }),
        forMs: fc.integer({ min: 0, max: 4 * LEASE_MS }),
      }),
      { maxLength: 5 },
    ),
  })

/** Whether an expelled node believed to hold a lease after its expulsion. */
const isLate = ({ expulsions }: SimulatedEnd) =>
  expulsions.some(({ atMs, leaseUntilMs }) => leaseUntilMs > atMs + 1e-3)

const quick = { rates: [1, 1, 1], tripMs: [5], troubles: [] }

describe('members of a cluster, in simulated time', () => {
  it('expel no node whose lease has not expired, whatever is stopped or cut off, and however slow clocks and trips are', async () => {
    let expelled = 0
    await fc.assert(
      fc.asyncProperty(simulations(LEASE_MARGIN), async (simulation) => {
        const end = await simulate(simulation, rules)
        expelled += end.expulsions.length
        expect(isLate(end)).toBe(false)
      }),
      { numRuns: 300 },
    )
    expect(expelled).toBeGreaterThan(100)
  })

  it.each([
    ['clocks that differ by more than the margin', 1.6, rules],
    ['expulsions that ignore the heartbeat', LEASE_MARGIN, { expelsOnlyTheHeartbeatSeen: false }],
  ] as const)('are caught when they have %s', async (_name, ratesMax, broken) => {
    const property = fc.asyncProperty(
      simulations(ratesMax),
      async (simulation) => !isLate(await simulate(simulation, broken)),
    )
    expect((await fc.check(property, { numRuns: 2_000, endOnFailure: true })).failed).toBe(true)
  })

  it('expel nodes that are cut off or stopped, and no others', async () => {
    for (const kind of ['cutOff', 'stopped'] as const) {
      const troubles = [{ kind, node: 1, fromMs: 2 * LEASE_MS, forMs: 3 * LEASE_MS }]
      const { expulsions } = await simulate({ ...quick, troubles }, rules)
      expect(expulsions.map(({ node }) => node)).toEqual([1])
    }
  })

  it('expel no node that is away for less than a lease, nor any after a database outage of any length', async () => {
    const outage = { kind: 'allCutOff' as const, node: 0, fromMs: 2_000, forMs: 5 * LEASE_MS }
    for (const troubles of [
      [{ kind: 'stopped' as const, node: 1, fromMs: 2_000, forMs: LEASE_MS / 2 }],
      [{ kind: 'cutOff' as const, node: 1, fromMs: 2_000, forMs: LEASE_MS / 2 }],
      [outage],
      // One node reaches the database later than the others, or was stopped as well.
      [outage, { ...outage, kind: 'cutOff' as const, node: 1, forMs: 5.5 * LEASE_MS }],
      [
        { ...outage, kind: 'stopped' as const, node: 0 },
        { ...outage, kind: 'stopped' as const, node: 1, forMs: 5.5 * LEASE_MS },
      ],
    ]) {
      const { expulsions } = await simulate({ rates: [1, 1], tripMs: [5], troubles }, rules)
      expect(expulsions).toEqual([])
    }
  })
})
