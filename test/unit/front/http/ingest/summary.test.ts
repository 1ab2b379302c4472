import { expect, it } from 'vitest'
import { limits } from '../../../../../src/base/limits/limits.js'
import { IngestTotals } from '../../../../../src/front/http/ingest/summary.js'
import type { AgentIngested, IngestedOutcome } from '../../../../../src/protocol/record-messages.js'

function outcomeOf(agent: string, seq: number): IngestedOutcome {
  const row: AgentIngested = { agent, accepted: 1, rejected: 0, firstSeq: seq, lastSeq: seq, chainHead: 'ab' }
  return { kind: 'ingested', accepted: 1, rejected: 0, faults: [], agents: [row] }
}

// Regression: a repetition with the same Idempotency-Key was answered with the agents in another order.
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

it('has rows only for agents with an accepted line, and a maximum number of rows', () => {
  const totals = new IngestTotals()
  const refused = { accepted: 0, rejected: 1, firstSeq: -1, lastSeq: -1, chainHead: '' }
  const outcomeWith = (agents: AgentIngested[]): IngestedOutcome => {
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
  totals.add(outcomeWith([{ agent: 'late', ...refused }]))
  totals.add(outcomeWith([outcomeOf('late', 1), outcomeOf('other', 1)].flatMap(({ agents }) => agents)))
  totals.add(outcomeWith([{ agent: 'never', ...refused }]))
  const summary = totals.many()
  expect(summary).toMatchObject({ accepted: 2, rejected: 2, rejected_by_code: { forbidden: 2 } })
  expect(Object.keys(summary.agents)).toEqual(['late', 'other'])
  expect(summary.agents['late']).toMatchObject({ accepted: 1, rejected: 1 })
  expect(summary).not.toHaveProperty('agents_truncated')
  for (let n = 0; n <= limits.ingestAgentsNamedMax; n++) totals.add(outcomeOf(`agent-${n}`, 1))
  const truncated = totals.many()
  expect(truncated.accepted).toBe(limits.ingestAgentsNamedMax + 3)
  expect([Object.keys(truncated.agents).length, truncated.agents_truncated]).toEqual([
    limits.ingestAgentsNamedMax,
    true,
  ])
})
