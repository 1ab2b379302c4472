import { expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { IngestTotals } from '../../../../../src/front/http/ingest/summary.js'
import type { AgentIngested, IngestedOutcome } from '../../../../../src/protocol/messages.js'

function outcomeOf(agent: string, seq: number): IngestedOutcome {
  const row: AgentIngested = { agent, accepted: 1, rejected: 0, firstSeq: seq, lastSeq: seq, chainHead: 'ab' }
  return { kind: 'ingested', accepted: 1, rejected: 0, faults: [], agents: [row] }
}

// A repetition under the same Idempotency-Key was answered with the agents in another order.
it('is the same text in whatever order the shards answer', () => {
  const outcomes = [outcomeOf('zeta', 1), outcomeOf('alpha', 4), outcomeOf('mid', 7), outcomeOf('', 9)]
  const [one, other] = [outcomes, outcomes.toReversed()].map((order) => {
    const totals = new IngestTotals()
    for (const outcome of order) totals.add(outcome)
    return JSON.stringify(totals.many())
  })
  expect(one).toBe(other)
  expect(Object.keys(JSON.parse(one ?? '{}').agents)).toEqual(['alpha', 'mid', 'zeta'])
})

it('has rows for agents that took something only, and for so many at the most', () => {
  const totals = new IngestTotals()
  const refused = { accepted: 0, rejected: 1, firstSeq: -1, lastSeq: -1, chainHead: '' }
  const told = (agents: AgentIngested[]): IngestedOutcome => {
    const accepted = agents.filter((row) => row.accepted > 0).length
    const rejected = agents.length - accepted
    return {
      kind: 'ingested',
      accepted,
      rejected,
      rejectedByCode: { forbidden: rejected },
      faults: [],
      agents,
    }
  }
  totals.add(told([{ agent: 'late', ...refused }]))
  totals.add(told([outcomeOf('late', 1), outcomeOf('other', 1)].flatMap(({ agents }) => agents)))
  totals.add(told([{ agent: 'never', ...refused }]))
  const few = totals.many()
  expect(few).toMatchObject({ accepted: 2, rejected: 2, rejected_by_code: { forbidden: 2 } })
  expect(Object.keys(few.agents)).toEqual(['late', 'other'])
  expect(few.agents['late']).toMatchObject({ accepted: 1, rejected: 1 })
  expect(few).not.toHaveProperty('agents_truncated')
  for (let n = 0; n <= limits.ingestAgentsNamedMax; n++) totals.add(outcomeOf(`agent-${n}`, 1))
  const many = totals.many()
  expect(many.accepted).toBe(limits.ingestAgentsNamedMax + 3)
  expect([Object.keys(many.agents).length, many.agents_truncated]).toEqual([
    limits.ingestAgentsNamedMax,
    true,
  ])
})
