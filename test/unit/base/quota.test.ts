import { describe, expect, it } from 'vitest'
import { Quota } from '../../../src/base/quota.js'
import { allocateTable, SharedHoldings } from '../../../src/front/limits/shared-table.js'
import { fc } from '../../support/fast-check.js'

describe('a quota', () => {
  it('limits what each holder holds, and what all hold together', () => {
    const quota = new Quota({ max: 10, perHolderMax: 6 })
    expect([quota.reserve('a', 6), quota.reserve('a'), quota.reserve('b', 5)]).toEqual([true, false, false])
    expect([quota.reserve('b', 4), quota.isFull, quota.hasCapacity('c')]).toEqual([true, true, false])
    quota.release('a', 2)
    expect([quota.total, quota.hasCapacity('a'), quota.reserve('b', 2)]).toEqual([8, true, true])
  })

  it('counts what exceeds it, and refuses everything else until that is released', () => {
    const quota = new Quota({ max: 10, perHolderMax: 6 })
    expect([quota.reserveBeyond('a', 6), quota.reserveBeyond('a', 3)]).toEqual([true, false])
    expect([quota.total, quota.hasCapacity('a'), quota.reserve('b', 2)]).toEqual([9, false, false])
    quota.release('a', 4)
    expect([quota.hasCapacity('a'), quota.reserve('b', 2)]).toEqual([true, true])
  })

  it('is not lowered by a holder that releases more than it holds', () => {
    const quota = new Quota({ max: 3 })
    quota.reserve('a', 2)
    quota.release('b')
    quota.release('a', 9)
    expect([quota.total, quota.reserve('a', 3), quota.reserve('a')]).toEqual([0, true, false])
  })
})

describe('a quota that several fronts share', () => {
  it('counts like that of one front, whichever front counts', () => {
    const step = fc.record({
      action: fc.constantFrom('reserve', 'reserveBeyond', 'release'),
      principal: fc.nat(4),
      amount: fc.nat(4),
      front: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const limits = { max: 15, perHolderMax: 6 }
        const local = new Quota(limits)
        const memory = allocateTable(5, 'secret')
        const fronts = [0, 1].map(() => new Quota(limits, new SharedHoldings(memory)))
        for (const { action, principal, amount, front } of steps) {
          const chosen = fronts[front ? 1 : 0] ?? expect.fail()
          const id = `key ${principal}`
          expect(chosen[action](id, amount)).toBe(local[action](id, amount))
          for (const quota of fronts) {
            expect([quota.total, quota.hasCapacity(id)]).toEqual([local.total, local.hasCapacity(id)])
          }
        }
      }),
    )
  })

  it('refuses a further holder while it has no space for one', () => {
    const quota = new Quota({}, new SharedHoldings(allocateTable(1, 'secret')))
    expect([quota.reserve('a'), quota.reserve('b'), quota.hasCapacity('b')]).toEqual([true, false, false])
    quota.release('a')
    expect(quota.reserve('b')).toBe(true)
  })
})
