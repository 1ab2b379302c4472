import { expect, it, vi } from 'vitest'
import { machineClock } from '../../../../src/base/clock.js'
import { limits } from '../../../../src/base/limits/limits.js'
import { clockAheadMs, clockFault, clockWarning } from '../../../../src/cluster/members/clocks.js'
import type { Member } from '../../../../src/cluster/members/member.js'
import type { MemberTable } from '../../../../src/cluster/members/membership.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'
import { membershipOf } from '../../../support/cluster/simulated-members.js'

const off = limits.clusterClockMs + 1

it('counts only what the time of an answer cannot explain', () => {
  const read = (databaseMs: number) => clockAheadMs({ sentAtMs: 1_000, answeredAtMs: 1_600, databaseMs })
  expect([read(400), read(1_000), read(1_300), read(1_600), read(1_900)]).toEqual([600, 0, 0, 0, -300])
})

it('is warned of from a second on, in words for people', () => {
  expect([clockWarning(), clockWarning(1_000), clockWarning(-1_000)]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect([clockWarning(1_240), clockWarning(-61_000)]).toEqual([
    'is 1.2 s ahead of the database’s',
    'is 61.0 s behind the database’s',
  ])
})

const cases: [what: string, own: number, others: number[], isFault: boolean][] = [
  ['agrees with the database', 0, [], false],
  ['is the only node, and the database disagrees', off, [], true],
  ['differs from the database and from the other node', off, [0], true],
  ['agrees with the other nodes against the database', off, [off, off], false],
  ['agrees with one of two other nodes against the database', off, [off, 0], true],
  ['agrees with the database against all other nodes', 0, [off, off], false],
  ['is behind, and others are ahead', -off, [off, off], true],
]

it('is a fault unless the database or most other nodes agree', () => {
  for (const [what, own, others, isFault] of cases)
    expect([what, clockFault(own, others) !== undefined]).toEqual([what, isFault])
})

it.each([86_400_000, -86_400_000])(
  'is not confirmed by a heartbeat in which it jumps by %i ms',
  async (jumpMs) => {
    const about = { node: 'a', address: '', formatMax: 1, settingsDigest: '' }
    let own: Member = { ...about, incarnation: 1, ended: 0, heartbeat: 0, alive: true, report: '{}' }
    let shiftMs = 0
    const trueClock = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => trueClock() + shiftMs)
    const table: MemberTable = {
      get databaseMs() {
        return trueClock()
      },
      all: async () => ({ members: [own], faults: [] }),
      join: async () => own,
      async heartbeat(_last, next) {
        if (next.heartbeat === 2) shiftMs = jumpMs
        own = next
        return 'counted'
      },
      expel: async () => false,
      drop() {},
    }
    const parts = { lease: new LeaseMemory(), nowMs: machineClock, connect: async () => table }
    const membership = membershipOf('a', parts)
    try {
      await membership.join()
      const before = membership.clock
      await membership.step()
      expect([membership.clock, Math.abs(before?.aheadMs ?? jumpMs) <= off]).toEqual([before, true])
      await membership.step()
      expect(Math.abs((membership.clock?.aheadMs ?? 0) - jumpMs)).toBeLessThan(off)
    } finally {
      vi.restoreAllMocks()
    }
  },
)
