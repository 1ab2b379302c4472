import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  HEARTBEATS_PER_LEASE,
  LEASE_MARGIN,
  MissedHeartbeats,
} from '../../../../src/cluster/members/lease.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'

const LEASE_MS = 1_000

describe('missed heartbeats of a node', () => {
  const at = (heartbeat: number, incarnation = 1) => [{ node: 'a', incarnation, heartbeat }]

  it('permit its expulsion after 1.1 leases in which its row did not change', () => {
    const missed = new MissedHeartbeats(LEASE_MS)
    missed.observe(at(7), 0)
    missed.observe(at(7), 1_000)
    expect(missed.expired(1_099)).toEqual([])
    expect(missed.expired(1_100)).toEqual([{ node: 'a', incarnation: 1, heartbeat: 7 }])
  })

  it('are counted again after each heartbeat, each incarnation, and failed heartbeats of the watching node', () => {
    for (const change of [
      (missed: MissedHeartbeats) => missed.observe(at(8), 1_000),
      (missed: MissedHeartbeats) => missed.observe(at(7, 2), 1_000),
      (missed: MissedHeartbeats) => {
        missed.forget()
        missed.observe(at(7), 1_000)
      },
      (missed: MissedHeartbeats) => {
        missed.observe([], 900)
        missed.observe(at(7), 1_000)
      },
    ]) {
      const missed = new MissedHeartbeats(LEASE_MS)
      missed.observe(at(7), 0)
      change(missed)
      expect(missed.expired(1_100)).toEqual([])
      expect(missed.expired(2_100)).toHaveLength(1)
    }
  })
})

/**
 * A node that sends some heartbeats and then no more, and a node that watches it. Times in milliseconds of
 * the watcher's clock.
 */
const someLives = fc.record({
  /** How much slower the clock of the watched node is: it believes in its lease for longer. */
  rate: fc.double({ min: 1, max: LEASE_MARGIN, noNaN: true }),
  heartbeats: fc.integer({ min: 1, max: 12 }),
  heartbeatMs: fc.integer({ min: 1, max: 300 }),
  /** Time from sending a heartbeat until the table has it. */
  travelMs: fc.integer({ min: 0, max: 40 }),
  readEveryMs: fc.integer({ min: 1, max: 60 }),
  /** Time from the state that a read sees until the read has ended. */
  readMs: fc.integer({ min: 0, max: 40 }),
})

describe('an expelled node', () => {
  it('has no lease, whatever the rate of its clock and the duration of heartbeats and reads', () => {
    fc.assert(
      fc.property(someLives, ({ rate, heartbeats, heartbeatMs, travelMs, readEveryMs, readMs }) => {
        const missed = new MissedHeartbeats(LEASE_MS)
        const ownClock = (ms: number) => ms / rate
        const heartbeatAt = (ms: number) =>
          Math.max(0, Math.min(heartbeats, Math.floor((ms - travelMs) / heartbeatMs) + 1))
        let expelledAtMs: number | undefined
        for (let ms = 0; expelledAtMs === undefined; ms += readEveryMs) {
          missed.observe([{ node: 'a', incarnation: 1, heartbeat: heartbeatAt(ms) }], ms + readMs)
          // The table changes the row only if it still has the heartbeat that was read.
          const [over] = missed.expired(ms + readMs)
          if (over?.heartbeat === heartbeatAt(ms + readMs)) expelledAtMs = ms + readMs
        }
        // Heartbeats that took effect are confirmed, however late; later ones never are.
        const lease = new LeaseMemory()
        for (let heartbeat = 0; heartbeat < heartbeatAt(expelledAtMs); heartbeat++)
          lease.extend(ownClock(heartbeat * heartbeatMs) + LEASE_MS)
        expect(lease.untilMs).toBeLessThanOrEqual(ownClock(expelledAtMs) + 1e-6)
      }),
      { numRuns: 5_000 },
    )
  })

  it('sends heartbeats often enough to tolerate a lost one', () => {
    expect(HEARTBEATS_PER_LEASE).toBeGreaterThanOrEqual(3)
  })
})
