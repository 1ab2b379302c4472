import { describe, expect, it } from 'vitest'
import { allocateTable } from '../../../../src/front/limits/shared-table.js'
import { SharedPrincipalQuotas, PrincipalQuotas } from '../../../../src/front/limits/quotas.js'
import { fc } from '../../../support/fast-check.js'

describe('quotas that several fronts share', () => {
  it('count like those of one front, whichever front counts', () => {
    const step = fc.record({
      action: fc.constantFrom('take', 'add', 'give'),
      principal: fc.nat(4),
      count: fc.integer({ min: 1, max: 4 }),
      front: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const local = new PrincipalQuotas(6)
        const memory = allocateTable(5, 'secret')
        const fronts = [new SharedPrincipalQuotas(6, memory), new SharedPrincipalQuotas(6, memory)]
        for (const { action, principal, count, front } of steps) {
          const chosen = fronts[front ? 1 : 0]
          const id = `key ${principal}`
          if (action === 'take') expect(chosen?.take(id, count)).toBe(local.take(id, count))
          else if (action === 'add') {
            local.add(id, count)
            chosen?.add(id, count)
          } else {
            local.release(id, count)
            chosen?.release(id, count)
          }
          for (const quotas of fronts) expect(quotas.hasCapacity(id)).toBe(local.hasCapacity(id))
        }
      }),
    )
  })
})
