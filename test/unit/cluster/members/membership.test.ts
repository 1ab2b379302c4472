import { describe, expect, it } from 'vitest'
import { LEASE_MARGIN } from '../../../../src/cluster/members/lease.js'
import {
  LEASE_MS,
  simulate,
  type SimulatedEnd,
  type TableRules,
} from '../../../support/cluster/simulated-members.js'
import { fc } from '../../../support/fast-check.js'

const rules: TableRules = { expelsOnlyTheBeatSeen: true }

const lives = (ratesMax: number) =>
  fc.record({
    rates: fc.array(fc.double({ min: 1, max: ratesMax, noNaN: true }), { minLength: 2, maxLength: 4 }),
    waysMs: fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40 }),
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

/** Whoever was expelled believed to have a lease for longer than that. */
const isLate = ({ expulsions }: SimulatedEnd) =>
  expulsions.some(({ atMs, leaseUntilMs }) => leaseUntilMs > atMs + 1e-3)

const quick = { rates: [1, 1, 1], waysMs: [5], troubles: [] }

describe('members of a cluster, in a time of their own', () => {
  it('expel nobody whose lease is not over, whatever is stopped or cut off, and however slow clocks and ways are', async () => {
    let expelled = 0
    await fc.assert(
      fc.asyncProperty(lives(LEASE_MARGIN), async (some) => {
        const end = await simulate(some, rules)
        expelled += end.expulsions.length
        expect(isLate(end)).toBe(false)
      }),
      { numRuns: 300 },
    )
    expect(expelled).toBeGreaterThan(100)
  })

  it.each([
    ['clocks that differ by more than the margin', 1.6, rules],
    ['expulsions that do not look at the beat', LEASE_MARGIN, { expelsOnlyTheBeatSeen: false }],
  ] as const)('are found out when they have %s', async (_name, ratesMax, broken) => {
    const property = fc.asyncProperty(lives(ratesMax), async (some) => !isLate(await simulate(some, broken)))
    expect((await fc.check(property, { numRuns: 2_000, endOnFailure: true })).failed).toBe(true)
  })

  it('expel who is cut off, and who is stopped, and nobody else', async () => {
    for (const kind of ['cutOff', 'stopped'] as const) {
      const troubles = [{ kind, node: 1, fromMs: 2 * LEASE_MS, forMs: 3 * LEASE_MS }]
      const { expulsions } = await simulate({ ...quick, troubles }, rules)
      expect(expulsions.map(({ node }) => node)).toEqual([1])
    }
  })

  it('expel nobody who is away for less than a lease, nor after the database was away for all, however long', async () => {
    const away = { kind: 'allCutOff' as const, node: 0, fromMs: 2_000, forMs: 5 * LEASE_MS }
    for (const troubles of [
      [{ kind: 'stopped' as const, node: 1, fromMs: 2_000, forMs: LEASE_MS / 2 }],
      [{ kind: 'cutOff' as const, node: 1, fromMs: 2_000, forMs: LEASE_MS / 2 }],
      [away],
      // One of them reaches it again later than the others, or was stopped beside.
      [away, { ...away, kind: 'cutOff' as const, node: 1, forMs: 5.5 * LEASE_MS }],
      [
        { ...away, kind: 'stopped' as const, node: 0 },
        { ...away, kind: 'stopped' as const, node: 1, forMs: 5.5 * LEASE_MS },
      ],
    ]) {
      const { expulsions } = await simulate({ rates: [1, 1], waysMs: [5], troubles }, rules)
      expect(expulsions).toEqual([])
    }
  })
})
