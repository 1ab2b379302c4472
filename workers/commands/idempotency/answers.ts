import { createHash, type Hash } from 'node:crypto'
import { assert } from '../../../src/base/assert.js'
import { refuse, type Refusal } from '../../../src/base/errors.js'
import { placementOf } from '../../../src/strand/placement.js'
import { isApiKeyMade, type ApiKeyMadeOutcome } from '../../../src/protocol/api-key-messages.js'
import type { Command, Outcome } from '../../../src/protocol/messages.js'
import { canonicalJson } from '../../../src/strand/json.js'
import { seal, unseal, type SealContext } from '../../../src/strand/seal.js'
import { batchDone, refusedInBatch, writeResponse } from '../../../src/wire/render.js'
import type { Prepared } from '../../shard/command-table.js'
import type { CommitGroup, Draft } from '../../shard/commit-group.js'
import { findAgent, type Decision, type ShardState } from '../../shard/state.js'
import { hasErasure, type SeqRange, erasures } from '../../store/tables/erasures.js'
import { idempotencyRow, idempotency, type IdempotentOutcome } from '../../store/tables/idempotency.js'
import { recordsFrom } from '../../store/tables/records.js'
import { apiKeys } from '../../store/tables/api-keys.js'

/** A write under an Idempotency-Key. */
export interface KeyedRequest {
  /** The key of its row in the store: a digest of the caller and the Idempotency-Key. */
  row: Buffer
  /** The name of its agent; empty if it belongs to the first shard. */
  agent: string
  /** Whether the row's key contains a digest of the content, so that finding the row confirms a guess. */
  isByContent?: true
  /** A digest of the request with the exact bytes of its body. */
  digest: string
  /**
   * A digest with the canonical JSON of its body, once parsed: white space and member order do not change a
   * request.
   */
  content?: string
  /** The placement of the agent to which the key belongs. */
  place: number
  /** What the answer is made of, if it can be made again from the records of the request. */
  as?: 'record' | 'batch'
}

/** The keyed request of a command; `agent` is empty for keys that belong to the first shard. */
export function keyedRequest(
  command: Command,
  { caller, agent, key }: { caller: string; agent: string; key: string },
): KeyedRequest {
  const place = agent === '' ? 0 : placementOf(agent)
  const as = remadeAs[command.kind]
  const row = idempotencyRow(caller, agent, key)
  return { row, agent, digest: digestOf(asWritten(command)), place, ...(as !== undefined && { as }) }
}

/** Writes whose answers name their records and nothing else. */
const remadeAs: Partial<Record<Command['kind'], 'record' | 'batch'>> = {
  recordAppend: 'record',
  ingestOne: 'record',
  batchAppend: 'batch',
}

/** The digest of a command with the canonical content of its JSON body. */
export function contentDigest(command: Command, content: string): string {
  return digestOf(command, content)
}

/** Adds a record to a digest by its type and body; a refused record by its bytes. */
export function addContent(content: Hash, draft: Draft | Refusal, bytes: Uint8Array): void {
  if ('code' in draft) content.update(`refused ${bytes.length}\n`).update(bytes)
  else content.update(`${draft.type} ${draft.body.length}\n`).update(draft.body)
}

/** A write of one draft, whose content is its type and body. A refused draft has none. */
export function preparedDraft(
  draft: Draft | Refusal,
  append: (draft: Draft, group: CommitGroup) => Decision,
  refused: (refusal: Refusal, group: CommitGroup) => Decision = (refusal) => refusal,
): Prepared {
  if ('code' in draft) return { content: () => undefined, run: (group) => refused(draft, group) }
  const content = () => {
    const digest = createHash('sha256')
    addContent(digest, draft, draft.body)
    return digest.digest('base64')
  }
  return { content, run: (group) => append(draft, group) }
}

/** Whether a command only checks whether a write is allowed; its answer is not stored. */
export function isCheck(command: Command): boolean {
  if (command.kind === 'agentKeyRotate') return command.check === true
  return command.kind === 'ingestChunk' && command.mode === 'check'
}

/** A check as the write that follows it, so that both have the same digest. */
function asWritten(command: Command): Command {
  return command.kind === 'ingestChunk' && command.mode === 'check' ? { ...command, mode: 'reject' } : command
}

/**
 * The earlier answer to the request, from this group or from disk (docs/adr/0008-idempotency.md); 422
 * idempotency_key_reused if the key was used for another request; undefined if the key is new. Once a record
 * of the request is erased, nothing may confirm a guess of its body: a key gets the first answer whatever the
 * request is, and a body counts as new.
 */
export function answeredBefore(
  state: ShardState,
  group: CommitGroup,
  { row, agent, digest, content, isByContent }: Omit<KeyedRequest, 'place'>,
): Decision | undefined {
  const pending = group.changes.find(idempotency)?.get(row.toString('latin1'))
  const stored =
    pending === undefined ? state.store.tables.of(idempotency).find(row, state.clock()) : undefined
  const before = pending ?? stored
  if (before === undefined) return undefined
  const isErased = before.seqs !== undefined && hasErased(state, group, { agent, seqs: before.seqs })
  if (isErased && isByContent === true) return undefined
  if (!isErased && before.digest !== digest && (content === undefined || before.content !== content)) {
    return refuse('idempotency_key_reused', 'This Idempotency-Key was already used for a different request')
  }
  if (stored !== undefined) return () => replayed(state, shownAgain(state, { row, agent, ...stored }))
  return pending === undefined ? undefined : () => replayed(state, pending.outcome())
}

/**
 * A digest of all members of a command except those that may differ between retries: options, claims (a newer
 * token may change them), the check flag and looked-up values; and the caller, which is part of the row's
 * key.
 */
function digestOf(command: Command, content?: string): string {
  const digest = createHash('sha256')
  for (const [name, value] of Object.entries(command)) {
    if (notDigested.has(name)) continue
    digest.update(`${name}\n`)
    if (value instanceof Uint8Array) digest.update(name === 'body' && content !== undefined ? content : value)
    else digest.update(canonicalJson(value))
  }
  return digest.digest('base64')
}

const notDigested = new Set([
  'options',
  'caller',
  'access',
  'check',
  'maker',
  'line',
  'keyMadeAtMs',
  'standings',
  'otherAdmins',
])

/** Whether a record was erased, also by this group. */
function hasErased(
  state: ShardState,
  group: CommitGroup,
  { agent: name, seqs }: { agent: string; seqs: SeqRange },
): boolean {
  const agent = findAgent(state, group, name)
  if (agent === undefined) return false
  const [first, last] = seqs
  const pending = group.changes.find(erasures)?.all ?? []
  const erases = pending.some(({ agentNo, seq }) => agentNo === agent.no && seq >= first && seq <= last)
  return erases || hasErasure(state.store.environment, agent.no, seqs)
}

/** Carries out a write and stores its answer in the transaction of its records, unless it is refused. */
export function writeKeyed(
  state: ShardState,
  { request, group }: { request: KeyedRequest; group: CommitGroup },
  { write, isStored }: { write: () => Decision; isStored: (decision: () => Outcome) => boolean },
): Decision {
  const first = nextSeq(state, group, request.agent)
  const decision = write()
  if (typeof decision !== 'function' || !isStored(decision)) return decision
  const last = nextSeq(state, group, request.agent) - 1
  storeAnswer(state, group, {
    ...request,
    ...(last >= first && { seqs: [first, last] }),
    outcome: decision,
  })
  return decision
}

function nextSeq(state: ShardState, group: CommitGroup, name: string): number {
  const agent = name === '' ? undefined : findAgent(state, group, name)
  return agent === undefined ? 0 : agent.head.seq + 1
}

/** Stores an answer in the transaction of its records. */
export function storeAnswer(
  state: ShardState,
  group: CommitGroup,
  request: KeyedRequest & { seqs?: SeqRange; outcome: () => Outcome },
): void {
  const { row, digest, content, seqs, place, outcome } = request
  const kept = () => asStored(state, request)
  group.changes.of(idempotency).set(row.toString('latin1'), {
    key: row,
    digest,
    content,
    seqs,
    placement: place,
    outcome,
    storedOutcome: kept,
  })
}

/**
 * The shortest form of an answer. One that contains an API key is sealed: only the hash of a key may be readable
 * in the store. One that names each of many records, and refuses none, needs only their seqs.
 */
function asStored(
  state: ShardState,
  {
    row,
    as,
    seqs,
    ...request
  }: Pick<KeyedRequest, 'row' | 'as'> & { seqs?: SeqRange; outcome: () => Outcome },
): IdempotentOutcome {
  const outcome = request.outcome()
  if (outcome.kind === 'reply' && as !== undefined && seqs !== undefined)
    return outcome.body.includes(refusedInBatch) ? outcome : { kind: 'written', as }
  if (outcome.kind !== 'apiKeyMade') return outcome
  const secret = Buffer.from(JSON.stringify(outcome))
  const box = seal(state.masterSeed, { ...sealedPlaceOf(row), secret }, state.random)
  return { kind: 'sealed', box: box.toString('base64') }
}

/** The outcome of a stored answer. */
function shownAgain(
  state: ShardState,
  {
    row,
    agent,
    seqs,
    outcome: stored,
  }: { row: Buffer; agent: string; seqs?: SeqRange; outcome: IdempotentOutcome },
): Outcome {
  if (stored.kind === 'written') {
    const results = writtenBy(state, agent, seqs)
    const [only = ''] = results
    return { kind: 'reply', status: 201, body: stored.as === 'record' ? only : batchDone(results) }
  }
  if (stored.kind !== 'sealed') return stored
  const secret = unseal(state.masterSeed, sealedPlaceOf(row), Buffer.from(stored.box, 'base64'))
  const outcome: unknown = JSON.parse(secret.toString())
  assert(isApiKeyMade(outcome), 'only answers that contain an API key are sealed')
  return outcome
}

/** The answers to the records of a request. The genesis record of a new agent is not among them. */
function writtenBy({ store }: ShardState, name: string, seqs: SeqRange | undefined): string[] {
  const agent = store.agents.find(name)
  assert(agent !== undefined && seqs !== undefined, 'a written answer has its agent and records')
  const [first, last] = [Math.max(seqs[0], 1), seqs[1]]
  const results: string[] = []
  for (const record of recordsFrom(store.environment, agent.no, { fromSeq: first, order: 'asc' })) {
    if (record.seq > last) break
    results.push(writeResponse(name, record))
  }
  assert(results.length === last - first + 1, 'the records of a written answer exist')
  return results
}

/** Binds a sealed answer to its row, so that it cannot be unsealed in another row. */
function sealedPlaceOf(row: Buffer): SealContext {
  return { purpose: 'strandfast/kept-answer/v1', boundTo: row }
}

/** Runs after the commit, so that an API key that the same commit deleted is not reported as live. */
function replayed(state: ShardState, outcome: Outcome): Outcome {
  switch (outcome.kind) {
    case 'reply':
    case 'ingested':
      return { ...outcome, replayed: true }
    case 'apiKeyMade':
      return replayedKey(state, outcome)
    default:
      return outcome
  }
}

function replayedKey(state: ShardState, outcome: ApiKeyMadeOutcome): Outcome {
  const row = state.store.tables.of(apiKeys).find(outcome.row.keyId)
  return { ...outcome, row: row ?? outcome.row, live: row !== undefined, replayed: true }
}
