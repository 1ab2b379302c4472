import type { ErrorCode, Refusal } from '../../src/base/errors.js'
import type { CommandOf } from '../../src/protocol/messages.js'
import type { IngestedOutcome } from '../../src/protocol/record-messages.js'
import { locateFault } from '../../src/strand/json-fault.js'
import type { CommitGroup, Draft } from '../shard/commit-group.js'
import { ingestRules } from './ingest/judge.js'
import { answeredBefore, keyedRequest, preparedDraft } from './idempotency/answers.js'
import { isOneLine, type IngestLines } from './ingest/reader.js'
import { ingestPieces, isAllOrNone, writeLines } from './ingest/lines.js'
import { ingestInOneGroup, ingestIdempotent, ingestKeyed } from './idempotency/ingest.js'
import type { FeatureCommands } from '../shard/command-table.js'
import { Tally } from './ingest/tally.js'
import { type Decision, type ShardState, findAgent, type Steps, type Turn } from '../shard/state.js'
import { eventReused, storeWritten, onceKey } from './ingest/written-once.js'
import { readBareDraft, readEvent, type DraftRules } from './drafts.js'
import { appendOne, targetAgent } from './records.js'

/** Ingest. */
export const ingestCommands = {
  writes: { ingestOne: { decide: ingestOne, prepare: prepareOne } },
  longWrites: { ingestChunk: { steps: ingestChunk } },
} satisfies FeatureCommands

/** Appends a record whose data is the request body (POST /v1/ingest/:agent). */
function ingestOne(state: ShardState, command: CommandOf<'ingestOne'>, group: CommitGroup): Decision {
  return prepareOne(state, command).run(group)
}

function prepareOne(state: ShardState, command: CommandOf<'ingestOne'>) {
  const rules = ingestRules(state, command)
  const { body, event, refusal } = command
  const draft = refusal ?? (event === undefined ? bodyDraft(body, rules) : readEvent(body, event, rules))
  const orKept = (decision: Decision, group: CommitGroup) =>
    typeof decision === 'function' || command.keep !== true || !bodyCodes.has(decision.code)
      ? decision
      : keepOne(state, { command, refusal: decision }, group)
  return preparedDraft(
    draft,
    (ready, group) => orKept(writeOne(state, { command, draft: ready }, group), group),
    orKept,
  )
}

/** Appends lines, or finds the earlier answer to their Idempotency-Key. */
function ingestChunk(state: ShardState, command: IngestLines, turn: Turn): Steps<Decision> {
  const { idempotency } = command.options
  if (idempotency === undefined) {
    return isAllOrNone(command) || isOneLine(command)
      ? ingestInOneGroup(state, command, turn)
      : ingestPieces(state, command, turn)
  }
  if (command.agent === '') return ingestKeyed(state, { command, ...idempotency }, turn)
  const request = keyedRequest(command, { ...idempotency, agent: command.agent })
  return ingestIdempotent(state, { chunk: command, request }, turn)
}

/** The draft of a body that is one record; the refusal of invalid JSON contains the position. */
function bodyDraft(body: Uint8Array, rules: DraftRules): Draft | Refusal {
  const draft = readBareDraft(body, rules)
  return 'code' in draft ? locateFault(body, draft) : draft
}

function writeOne(
  state: ShardState,
  { command, draft }: { command: CommandOf<'ingestOne'>; draft: Draft },
  group: CommitGroup,
): Decision {
  const { once, agent } = command
  const key = once && onceKey(once, agent, draft)
  if (key !== undefined && 'code' in key) return key
  const before = key && answeredBefore(state, group, key)
  if (before !== undefined) return typeof before === 'function' ? () => onDiskBefore : eventReused
  const decision = appendOne(state, { ...command, emerge: true, draft }, group)
  const seq = findAgent(state, group, agent)?.head.seq ?? 0
  if (key !== undefined && typeof decision === 'function')
    storeWritten(state, group, { key, seqs: [seq, seq] })
  return decision
}

const onDiskBefore: IngestedOutcome = {
  kind: 'ingested',
  accepted: 1,
  rejected: 0,
  duplicates: 1,
  faults: [],
  agents: [],
}

/** The codes of faults in the record itself, which a retry cannot fix. */
const bodyCodes = new Set<ErrorCode>([
  'validation_failed',
  'too_large',
  'forbidden',
  'idempotency_key_reused',
])

/**
 * Keeps a refused record in the same way as a refused line; if that is not allowed, answers with the refusal.
 */
function keepOne(
  state: ShardState,
  { command, refusal }: { command: CommandOf<'ingestOne'>; refusal: Refusal },
  group: CommitGroup,
): Decision {
  const { agent, body, event, options, access } = command
  const target = targetAgent(state, { agent, emerge: false, options, ...(access && { access }) }, group)
  if ('code' in target && target.code !== 'agent_not_found') return refusal
  const chunk: IngestLines = {
    kind: 'ingestChunk',
    agent,
    chunk: body,
    firstLine: 1,
    mode: 'keep',
    options,
    ...(access && { access }),
    ...(command.once && { once: command.once }),
  }
  const attributes = event && { event: event.attributes }
  const lines = [{ line: 1, agent, bytes: body, draft: refusal, ...attributes }]
  const tally = new Tally()
  const fault = writeLines(state, { command: chunk, lines, tally }, group)
  return fault ?? (tally.kept === 0 ? refusal : () => tally.outcome())
}
