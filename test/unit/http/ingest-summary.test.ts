import { expect, it } from 'vitest'
import { IngestTotals } from '../../../src/http/ingest-summary.js'
import type { AgentIngested, IngestedOutcome } from '../../../src/protocol/messages.js'

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
