import type { Refusal } from '../../src/base/errors.js'
import { limits } from '../../src/base/limits/limits.js'
import { isKept, type IngestedOutcome, type Outcome } from '../../src/protocol/messages.js'
import type { CommitGroup } from './commit-group.js'
import type { Ahead } from './sign-ahead.js'
import {
  areAllGood,
  ingestPieces,
  isAllOrNone,
  readLines,
  signLines,
  stillSigned,
  writeRead,
  type ReadLines,
} from '../commands/ingest.js'
import { linesByAgent, type IngestLines } from './ingest-reader.js'
import { answeredBefore, isCheck, keepAnswer, keyedRequest, type KeyedRequest } from './idempotent-answers.js'
import type { Decision, ShardState, Steps, Turn } from './state.js'

/** The lines of one agent, and their request under the Idempotency-Key. */
interface AgentPart {
  chunk: IngestLines
  request: KeyedRequest
}

/**
 * Appends the lines of many agents under an Idempotency-Key. Each agent has an idempotent answer of its own, as in an
 * upload for it alone, so the same upload is recognised after its agents were moved to another number of shards
 * (docs/adr/0021-resharding.md). 422 idempotency_key_reused, and then nothing is written. Of a check nothing is kept.
 */
export function* ingestKeyed(
  state: ShardState,
  { command, caller, key }: { command: IngestLines; caller: string; key: string },
  turn: Turn,
): Steps<Decision> {
  const { nameless, byAgent } = yield* linesByAgent(command, turn)
  const parts: AgentPart[] = []
  for (const [agent, lines] of byAgent) {
    const chunk = { ...command, ...lines }
    const request = keyedRequest(chunk, { caller, agent, key })
    const before = answeredBefore(state, turn.group, request)
    if (before !== undefined && typeof before !== 'function') return before
    parts.push({ chunk, request })
    if (turn.spent()) yield
  }
  if (isAllOrNone(command)) {
    // All or none: every line is checked before the first agent's lines are written.
    const check = yield* ingestAtOnce(state, { ...command, mode: 'check' }, turn)
    if (isCheck(command) || !isClean(check)) return check
    return yield* allOrNone(state, parts, turn)
  }
  const decisions: Decision[] = []
  for (const part of parts) {
    decisions.push(yield* keptOf(state, part, turn))
    if (turn.spent()) yield
  }
  // Lines that name no agent are refused each time, so their answer is not kept.
  if (nameless !== undefined) decisions.push(yield* ingestPieces(state, { ...command, ...nameless }, turn))
  return sumDecision(decisions)
}

/** Appends the lines of one chunk in one group, or counts them: all that are good, or all or none, as its mode says. */
export function* ingestAtOnce(state: ShardState, command: IngestLines, turn: Turn): Steps<Decision> {
  const read = yield* readLines(state, command, turn)
  if ('code' in read) return read
  const reads = [read]
  const ahead = command.mode === 'check' ? undefined : yield* signLines(state, reads, turn)
  const { group } = turn
  return writeRead(state, read, { group, ahead: stillSigned(state, { reads, ahead }, group) })
}

/** Appends lines and keeps their answer, or finds the answer that was given before. */
export function* keptOf(state: ShardState, { chunk, request }: AgentPart, turn: Turn): Steps<Decision> {
  const before = answeredBefore(state, turn.group, request)
  if (before !== undefined) return before
  const read = yield* readLines(state, chunk, turn)
  if ('code' in read) return read
  const reads = [read]
  const ahead = isCheck(chunk) ? undefined : yield* signLines(state, reads, turn)
  const signed = stillSigned(state, { reads, ahead }, turn.group)
  return appendKept(state, { request, read, ahead: signed }, turn.group)
}

/** Writes an upload all or none, in one group. */
function* allOrNone(state: ShardState, parts: readonly AgentPart[], turn: Turn): Steps<Decision> {
  const kept: { request: KeyedRequest; read: ReadLines }[] = []
  const decisions: Decision[] = []
  for (const { chunk, request } of parts) {
    const before = answeredBefore(state, turn.group, request)
    if (before !== undefined) {
      decisions.push(before)
      continue
    }
    const read = yield* readLines(state, chunk, turn)
    if ('code' in read) return read
    kept.push({ request, read })
  }
  const reads = kept.map(({ read }) => read)
  const ahead = yield* signLines(state, reads, turn)
  const { group } = turn
  const signed = stillSigned(state, { reads, ahead }, group)
  if (!reads.every((read) => areAllGood(state, read, group))) {
    const checks = reads.map(({ command, lines }): ReadLines => {
      return { command: { ...command, mode: 'check' }, lines }
    })
    return sumDecision(checks.map((read) => writeRead(state, read, { group, ahead: undefined })))
  }
  const lines = reads.reduce((sum, one) => sum + one.lines.length, 0)
  const skew = signed === undefined ? group.reserve(2 * lines) : undefined
  if (skew !== undefined) return skew
  for (const part of kept) decisions.push(appendKept(state, { ...part, ahead: signed }, group))
  return sumDecision(decisions)
}

function appendKept(
  state: ShardState,
  { request, read, ahead }: { request: KeyedRequest; read: ReadLines; ahead: Ahead | undefined },
  group: CommitGroup,
): Decision {
  // Another request may have written the same while this one was read.
  const before = answeredBefore(state, group, request)
  if (before !== undefined) return before
  const decision = writeRead(state, read, { group, ahead })
  if (typeof decision === 'function' && !isCheck(read.command) && keeps(decision)) {
    keepAnswer(state, group, { ...request, outcome: decision })
  }
  return decision
}

function keeps(decision: () => Outcome): boolean {
  const outcome = decision()
  return outcome.kind === 'ingested' && isKept(outcome)
}

function isClean(check: Decision): boolean {
  const outcome = typeof check === 'function' ? check() : undefined
  return outcome?.kind === 'ingested' && outcome.rejected === 0
}

function sumDecision(decisions: readonly Decision[]): Decision {
  const refusal = decisions.find((decision): decision is Refusal => typeof decision !== 'function')
  return refusal ?? (() => sumOf(decisions.flatMap(outcomeOf)))
}

function outcomeOf(decision: Decision): IngestedOutcome[] {
  const outcome = typeof decision === 'function' ? decision() : undefined
  return outcome?.kind === 'ingested' ? [outcome] : []
}

function sumOf(outcomes: readonly IngestedOutcome[]): IngestedOutcome {
  const sum: IngestedOutcome = { kind: 'ingested', accepted: 0, rejected: 0, faults: [], agents: [] }
  const byCode: Record<string, number> = {}
  for (const { accepted, rejected, kept, duplicates, rejectedByCode, faults, agents } of outcomes) {
    if (duplicates !== undefined) sum.duplicates = (sum.duplicates ?? 0) + duplicates
    if (kept !== undefined) sum.kept = (sum.kept ?? 0) + kept
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
  const replayed = outcomes.every((outcome) => outcome.replayed === true || !isKept(outcome))
  return replayed && isKept(sum) ? { ...sum, replayed: true } : sum
}
