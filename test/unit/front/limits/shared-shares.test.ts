import { describe, expect, it } from 'vitest'
import { sharedTableMemory } from '../../../../src/front/limits/shared-table.js'
import { SharedShares, Shares } from '../../../../src/front/limits/shares.js'
import { fc } from '../../../support/fast-check.js'

describe('shares that several fronts count', () => {
  it('are what one front counts, whichever of two does it', () => {
    const step = fc.record({
      how: fc.constantFrom('take', 'add', 'give'),
      principal: fc.nat(4),
      count: fc.integer({ min: 1, max: 4 }),
      front: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const own = new Shares(6)
        const memory = sharedTableMemory(5, 'secret')
        const fronts = [new SharedShares(6, memory), new SharedShares(6, memory)]
        for (const { how, principal, count, front } of steps) {
          const one = fronts[front ? 1 : 0]
          const id = `key ${principal}`
          if (how === 'take') expect(one?.take(id, count)).toBe(own.take(id, count))
          else if (how === 'add') {
            own.add(id, count)
            one?.add(id, count)
          } else {
            own.give(id, count)
            one?.give(id, count)
          }
          for (const shares of fronts) expect(shares.has(id)).toBe(own.has(id))
        }
      }),
    )
  })
})
