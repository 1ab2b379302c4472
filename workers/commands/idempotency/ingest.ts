import type { Refusal } from '../../../src/base/errors.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import { isStoredOutcome, type IngestedOutcome } from '../../../src/protocol/record-messages.js'
import type { CommitGroup } from '../../shard/commit-group.js'
import type { SignedAhead } from '../ingest/sign-ahead.js'
import {
  areAllValid,
  ingestPieces,
  isAllOrNone,
  readLines,
  signLines,
  stillSigned,
  writeRead,
  type ReadLines,
} from '../ingest/lines.js'
import { linesByAgent, type IngestLines } from '../ingest/reader.js'
import { answeredBefore, isCheck, writeKeyed, keyedRequest, type KeyedRequest } from './answers.js'
import type { Decision, ShardState, Steps, Turn } from '../../shard/state.js'

/** The lines of one agent, and their request under the Idempotency-Key. */
interface AgentPart {
  chunk: IngestLines
  request: KeyedRequest
}

/**
 * Appends the lines of many agents under an Idempotency-Key. The answer is stored per agent, so the upload is
 * recognised even if its agents were moved to other shards (docs/adr/0021-resharding.md). The answer to a
 * check is not stored. If the key was used for another upload, nothing is written: 422
 * idempotency_key_reused.
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
    // Check every line before the lines of the first agent are written.
    const check = yield* ingestInOneGroup(state, { ...command, mode: 'check' }, turn)
    if (isCheck(command) || !isClean(check)) return check
    return yield* allOrNone(state, parts, turn)
  }
  const decisions: Decision[] = []
  for (const part of parts) {
    decisions.push(yield* ingestIdempotent(state, part, turn))
    if (turn.spent()) yield
  }
  // Lines without an agent are always refused, so their answer is not stored.
  if (nameless !== undefined) decisions.push(yield* ingestPieces(state, { ...command, ...nameless }, turn))
  return sumDecision(decisions)
}

/** Appends the lines of a chunk in one group, or counts them in mode `check`. */
export function* ingestInOneGroup(state: ShardState, command: IngestLines, turn: Turn): Steps<Decision> {
  const read = yield* readLines(state, command, turn)
  if ('code' in read) return read
  const reads = [read]
  const ahead = command.mode === 'check' ? undefined : yield* signLines(state, reads, turn)
  const { group } = turn
  return writeRead(state, read, { group, ahead: stillSigned(state, { reads, ahead }, group) })
}

/** Appends lines and stores the answer, or returns the earlier answer. */
export function* ingestIdempotent(
  state: ShardState,
  { chunk, request }: AgentPart,
  turn: Turn,
): Steps<Decision> {
  const before = answeredBefore(state, turn.group, request)
  if (before !== undefined) return before
  const read = yield* readLines(state, chunk, turn)
  if ('code' in read) return read
  const reads = [read]
  const ahead = isCheck(chunk) ? undefined : yield* signLines(state, reads, turn)
  const signed = stillSigned(state, { reads, ahead }, turn.group)
  return appendAndStore(state, { request, read, ahead: signed }, turn.group)
}

/** Writes all lines of an upload in one group, or none of them. */
function* allOrNone(state: ShardState, parts: readonly AgentPart[], turn: Turn): Steps<Decision> {
  const newParts: { request: KeyedRequest; read: ReadLines }[] = []
  const decisions: Decision[] = []
  for (const { chunk, request } of parts) {
    const before = answeredBefore(state, turn.group, request)
    if (before !== undefined) {
      decisions.push(before)
      continue
    }
    const read = yield* readLines(state, chunk, turn)
    if ('code' in read) return read
    newParts.push({ request, read })
  }
  const reads = newParts.map(({ read }) => read)
  const ahead = yield* signLines(state, reads, turn)
  const { group } = turn
  const signed = stillSigned(state, { reads, ahead }, group)
  if (!reads.every((read) => areAllValid(state, read, group))) {
    const checks = reads.map(({ command, lines }): ReadLines => {
      return { command: { ...command, mode: 'check' }, lines }
    })
    return sumDecision(checks.map((read) => writeRead(state, read, { group, ahead: undefined })))
  }
  const lines = reads.reduce((sum, one) => sum + one.lines.length, 0)
  const skew = signed === undefined ? group.reserve(2 * lines) : undefined
  if (skew !== undefined) return skew
  for (const part of newParts) decisions.push(appendAndStore(state, { ...part, ahead: signed }, group))
  return sumDecision(decisions)
}

function appendAndStore(
  state: ShardState,
  { request, read, ahead }: { request: KeyedRequest; read: ReadLines; ahead: SignedAhead | undefined },
  group: CommitGroup,
): Decision {
  // Another request may have written the same lines while this one was parsed.
  const before = answeredBefore(state, group, request)
  if (before !== undefined) return before
  const write = () => writeRead(state, read, { group, ahead })
  const isStored = (decision: () => Outcome) => {
    const outcome = isCheck(read.command) ? undefined : decision()
    return outcome?.kind === 'ingested' && isStoredOutcome(outcome)
  }
  return writeKeyed(state, { request, group }, { write, isStored })
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
  const replayed = outcomes.every((outcome) => outcome.replayed === true || !isStoredOutcome(outcome))
  return replayed && isStoredOutcome(sum) ? { ...sum, replayed: true } : sum
}
