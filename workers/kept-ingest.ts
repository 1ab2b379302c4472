import type { Refusal } from '../src/base/errors.js'
import { limits } from '../src/base/limits.js'
import { namesAgents, type CommandOf, type IngestedOutcome, type Outcome } from '../src/protocol/messages.js'
import type { CommitGroup } from './commit-group.js'
import { ingestChunk, linesByAgent } from './commands/ingest.js'
import { answeredBefore, isCheck, keepAnswer, keyedRequest, type KeyedRequest } from './kept-answers.js'
import type { Decision, ShardState } from './shard-state.js'

type IngestChunk = CommandOf<'ingestChunk'>

/** The lines of one agent, and what they were answered before. */
interface Part {
  chunk: IngestChunk
  request: KeyedRequest
  before: (() => Outcome) | undefined
}

/**
 * Appends the lines of many agents under an Idempotency-Key. Each agent has a kept answer of its own, as where it is
 * written to alone: so the same upload is known again when its agents are shared out among another number of shards
 * (docs/adr/0021-resharding.md). 422 idempotency_key_reused, and then nothing is written. Of a check nothing is kept.
 */
export function ingestKeyed(
  state: ShardState,
  { command, caller, key }: { command: IngestChunk; caller: string; key: string },
  group: CommitGroup,
): Decision {
  const { nameless, byAgent } = linesByAgent(command)
  const parts: Part[] = []
  for (const [agent, lines] of byAgent) {
    const chunk = { ...command, ...lines }
    const request = keyedRequest(chunk, { caller, agent, key })
    const before = answeredBefore(state, group, request)
    if (before !== undefined && typeof before !== 'function') return before
    parts.push({ chunk, request, before })
  }
  if (isCheck(command)) return ingestChunk(state, command, group)
  if (command.mode === 'reject') {
    const refusal = refuseWhole(state, command, group)
    if (refusal !== undefined) return refusal
  }
  const decisions: Decision[] = parts.map((part) => part.before ?? append(state, part, group))
  // Lines that name no agent are bad whenever they come, and nothing of them is kept.
  if (nameless !== undefined) decisions.push(ingestChunk(state, { ...command, ...nameless }, group))
  const refusal = decisions.find((decision): decision is Refusal => typeof decision !== 'function')
  return refusal ?? (() => sumOf(decisions.flatMap(outcomeOf)))
}

function append(state: ShardState, { chunk, request }: Part, group: CommitGroup): Decision {
  const decision = ingestChunk(state, chunk, group)
  if (typeof decision === 'function') keepAnswer(state, group, { ...request, outcome: decision })
  return decision
}

/** All or none: what stands in the way of any line is found before the first agent's are written. */
function refuseWhole(state: ShardState, command: IngestChunk, group: CommitGroup): Decision | undefined {
  const check = ingestChunk(state, { ...command, mode: 'check' }, group)
  if (typeof check !== 'function') return check
  const outcome = check()
  if (outcome.kind !== 'ingested' || outcome.rejected > 0) return check
  return group.reserve(2 * outcome.accepted)
}

function outcomeOf(decision: Decision): IngestedOutcome[] {
  const outcome = typeof decision === 'function' ? decision() : undefined
  return outcome?.kind === 'ingested' ? [outcome] : []
}

function sumOf(outcomes: readonly IngestedOutcome[]): IngestedOutcome {
  const sum: IngestedOutcome = { kind: 'ingested', accepted: 0, rejected: 0, faults: [], agents: [] }
  const byCode: Record<string, number> = {}
  for (const { accepted, rejected, rejectedByCode, faults, agents } of outcomes) {
    sum.accepted += accepted
    sum.rejected += rejected
    for (const [code, count] of Object.entries(rejectedByCode ?? {})) {
      byCode[code] = (byCode[code] ?? 0) + count
    }
    sum.faults.push(...faults)
    sum.agents.push(...agents)
  }
  if (sum.rejected > 0) sum.rejectedByCode = byCode
  sum.faults.sort((left, right) => left.line - right.line).splice(limits.ingestFaultsMax)
  const replayed = outcomes.every((outcome) => outcome.replayed === true || !namesAgents(outcome))
  return replayed && namesAgents(sum) ? { ...sum, replayed: true } : sum
}
