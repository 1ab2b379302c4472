import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { BEATS_PER_LEASE, LEASE_MARGIN, Silence } from '../../../../src/cluster/members/lease.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'

const LEASE_MS = 1_000

describe('the silence of a node', () => {
  const at = (beat: number, incarnation = 1) => [{ node: 'a', incarnation, beat }]

  it('lets it be expelled after a lease and a tenth in which its row stayed the same', () => {
    const silence = new Silence(LEASE_MS)
    silence.saw(at(7), 0)
    silence.saw(at(7), 1_000)
    expect(silence.expired(1_099)).toEqual([])
    expect(silence.expired(1_100)).toEqual([{ node: 'a', incarnation: 1, beat: 7 }])
  })

  it('begins anew with each beat, each incarnation, and where the own beats did not get through', () => {
    for (const change of [
      (silence: Silence) => silence.saw(at(8), 1_000),
      (silence: Silence) => silence.saw(at(7, 2), 1_000),
      (silence: Silence) => {
        silence.forget()
        silence.saw(at(7), 1_000)
      },
      (silence: Silence) => {
        silence.saw([], 900)
        silence.saw(at(7), 1_000)
      },
    ]) {
      const silence = new Silence(LEASE_MS)
      silence.saw(at(7), 0)
      change(silence)
      expect(silence.expired(1_100)).toEqual([])
      expect(silence.expired(2_100)).toHaveLength(1)
    }
  })
})

/** A node that beats some times and then not again, and one that watches it. Times in milliseconds of the watcher's clock. */
const someLives = fc.record({
  /** By how much the clock of the node that beats is slower: it believes in its lease for longer. */
  rate: fc.double({ min: 1, max: LEASE_MARGIN, noNaN: true }),
  beats: fc.integer({ min: 1, max: 12 }),
  beatMs: fc.integer({ min: 1, max: 300 }),
  /** From the sending of a beat until it is in the table. */
  onTheWayMs: fc.integer({ min: 0, max: 40 }),
  readEveryMs: fc.integer({ min: 1, max: 60 }),
  /** From what a reading sees until it has ended. */
  readMs: fc.integer({ min: 0, max: 40 }),
})

describe('a node that is expelled', () => {
  it('has no lease any more, however its clock runs and however long beats and readings take', () => {
    fc.assert(
      fc.property(someLives, ({ rate, beats, beatMs, onTheWayMs, readEveryMs, readMs }) => {
        const silence = new Silence(LEASE_MS)
        const ownClock = (ms: number) => ms / rate
        const beatAt = (ms: number) =>
          Math.max(0, Math.min(beats, Math.floor((ms - onTheWayMs) / beatMs) + 1))
        let expelledAtMs: number | undefined
        for (let ms = 0; expelledAtMs === undefined; ms += readEveryMs) {
          silence.saw([{ node: 'a', incarnation: 1, beat: beatAt(ms) }], ms + readMs)
          // The table changes the row only where it has the beat that was seen.
          const [over] = silence.expired(ms + readMs)
          if (over?.beat === beatAt(ms + readMs)) expelledAtMs = ms + readMs
        }
        // Those that took effect are answered, however late; no other one ever will be.
        const lease = new LeaseMemory()
        for (let beat = 0; beat < beatAt(expelledAtMs); beat++)
          lease.extend(ownClock(beat * beatMs) + LEASE_MS)
        expect(lease.untilMs).toBeLessThanOrEqual(ownClock(expelledAtMs) + 1e-6)
      }),
      { numRuns: 5_000 },
    )
  })

  it('beats often enough that a lost beat costs nothing', () => {
    expect(BEATS_PER_LEASE).toBeGreaterThanOrEqual(3)
  })
})
