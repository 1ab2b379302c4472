import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { OpenAgents } from '../../../../workers/store/tables/open-agents.js'
import type { Agent } from '../../../../workers/store/tables/agent.js'

function agentOf(no: number): Agent {
  const publicKey = ''
  return {
    name: `agent-${no}`,
    no,
    zone: 'free',
    createdAtMs: 0,
    publicKey,
    strand: '',
    keyIndex: 0,
    keyPair: { publicKey, secretKey: Buffer.alloc(0) },
    head: { seq: 0, hash: '', hlc: { ms: 0, counter: 0 }, signature: '' },
    strandBytes: 0,
    mutated: false,
    policies: [],
    retiredKeys: [],
    importing: false,
    importedRecords: 0,
  }
}

describe('agents in memory', () => {
  it('are found by name and number, and evicted when they were not used for two turns', () => {
    const open = new OpenAgents(100)
    const [used, idle] = [agentOf(1), agentOf(2)]
    open.add(used)
    open.add(idle)
    open.evictIdle()
    expect(open.use('agent-1')).toBe(used)
    expect(open.byNo(2)).toBe(idle)
    open.evictIdle()
    expect(open.use('agent-1')).toBe(used)
    expect(open.byNo(1)).toBe(used)
    expect(open.use('agent-2')).toBeUndefined()
    expect(open.byNo(2)).toBeUndefined()
  })

  it('are replaced by later agents with the same name', () => {
    const open = new OpenAgents(100)
    open.add(agentOf(1))
    open.evictIdle()
    const later = agentOf(1)
    open.add(later)
    expect(open.use('agent-1')).toBe(later)
    expect(open.byNo(1)).toBe(later)
    open.evictIdle()
    expect(open.use('agent-1')).toBe(later)
  })

  it('stay within the limit, and include the most recently used half', () => {
    const uses = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 400 })
    fc.assert(
      fc.property(uses, (numbers) => {
        const open = new OpenAgents(20)
        const last: number[] = []
        for (const no of numbers) {
          if (open.use(`agent-${no}`) === undefined) open.add(agentOf(no))
          const at = last.indexOf(no)
          if (at >= 0) last.splice(at, 1)
          last.push(no)
          const kept = Array.from({ length: 41 }, (_none, index) => index).filter(
            (index) => open.byNo(index) !== undefined,
          )
          expect(kept.length).toBeLessThanOrEqual(20)
          for (const recent of last.slice(-10)) expect(kept).toContain(recent)
        }
      }),
    )
  })
})
