import { createHash, type Hash } from 'node:crypto'
import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import { placeOf } from '../../src/strand/placement.js'
import { isApiKeyMade, type ApiKeyMadeOutcome } from '../../src/protocol/api-key-messages.js'
import type { Command, Outcome } from '../../src/protocol/messages.js'
import { canonicalJson } from '../../src/strand/json.js'
import { seal, unseal, type SealedPlace } from '../../src/strand/seal.js'
import type { CommitGroup, Draft } from './commit-group.js'
import type { IdempotentOutcome } from '../store/write-set.js'
import type { Decision, ShardState } from './state.js'
import { idempotencyRow } from '../store/tables/idempotency.js'

/** A write under an Idempotency-Key. */
export interface KeyedRequest {
  /** The key of its row in the store, made of caller and Idempotency-Key. */
  row: Buffer
  /** Digest of what is asked, byte by byte. */
  digest: string
  /** The same of what its JSON says, once that was read: white space, and the order of members, make no other request. */
  content?: string
  /** The placement of the agent that the key belongs to. */
  place: number
}

/** The request of a command with an Idempotency-Key; `agent` is empty for keys that belong to the first shard. */
export function keyedRequest(
  command: Command,
  { caller, agent, key }: { caller: string; agent: string; key: string },
): KeyedRequest {
  const place = agent === '' ? 0 : placeOf(agent)
  return { row: idempotencyRow(caller, agent, key), digest: digestOf(asWritten(command)), place }
}

/** The digest of a command whose body is JSON, by what was read of it. */
export function contentDigest(command: Command, content: string): string {
  return digestOf(command, content)
}

/** Adds to a digest what a record asks for; one that is refused counts as it came. */
export function addContent(content: Hash, draft: Draft | Refusal, bytes: Uint8Array): void {
  if ('code' in draft) content.update(`refused ${bytes.length}\n`).update(bytes)
  else content.update(`${draft.type} ${draft.body.length}\n`).update(draft.body)
}

/** Whether a command only checks whether something may be written; its answer is not kept. */
export function isCheck(command: Command): boolean {
  if (command.kind === 'agentKeyRotate') return command.check === true
  return command.kind === 'ingestChunk' && command.mode === 'check'
}

/** The write that follows a check. */
function asWritten(command: Command): Command {
  return command.kind === 'ingestChunk' && command.mode === 'check' ? { ...command, mode: 'reject' } : command
}

/**
 * The answer that the request got before, in this group or on disk (docs/adr/0008-idempotency.md); 422
 * idempotency_key_reused when the key was used for another request; undefined when the key is new.
 */
export function answeredBefore(
  state: ShardState,
  group: CommitGroup,
  { row, digest, content }: Omit<KeyedRequest, 'place'>,
): Decision | undefined {
  const pending = group.answers.get(row.toString('latin1'))
  const kept = pending === undefined ? state.store.idempotency.find(row, state.clock()) : undefined
  const before = pending ?? kept
  if (before === undefined) return undefined
  if (before.digest !== digest && (content === undefined || before.content !== content)) {
    return refuse(
      'idempotency_key_reused',
      'Expected the request that this Idempotency-Key was first used for',
    )
  }
  if (kept !== undefined) return () => replayed(state, opened(state, row, kept.outcome))
  return pending === undefined ? undefined : () => replayed(state, pending.outcome())
}

/**
 * What makes two requests the same: the whole command except its options, whether it is a check, the claims, which a
 * newer token may change, the caller, to whom an Idempotency-Key belongs, and what is looked up for it.
 */
function digestOf(command: Command, content?: string): string {
  const digest = createHash('sha256')
  for (const [name, value] of Object.entries(command)) {
    if (notAsked.has(name)) continue
    digest.update(`${name}\n`)
    if (value instanceof Uint8Array) digest.update(name === 'body' && content !== undefined ? content : value)
    else digest.update(canonicalJson(value))
  }
  return digest.digest('base64')
}

const notAsked = new Set([
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

/** Keeps an answer in the transaction of its record. */
export function keepAnswer(
  state: ShardState,
  group: CommitGroup,
  { row, digest, content, place, outcome }: KeyedRequest & { outcome: () => Outcome },
): void {
  const kept = () => closed(state, row, outcome())
  group.answers.set(row.toString('latin1'), { key: row, digest, content, place, outcome, kept })
}

/** Only the hash of an API key may be readable in the store, so an answer that shows a key is sealed. */
function closed(state: ShardState, row: Buffer, outcome: Outcome): IdempotentOutcome {
  if (outcome.kind !== 'apiKeyMade') return outcome
  const secret = Buffer.from(JSON.stringify(outcome))
  const box = seal(state.masterSeed, { ...sealedPlaceOf(row), secret }, state.random)
  return { kind: 'sealed', box: box.toString('base64') }
}

function opened(state: ShardState, row: Buffer, kept: IdempotentOutcome): Outcome {
  if (kept.kind !== 'sealed') return kept
  const secret = unseal(state.masterSeed, sealedPlaceOf(row), Buffer.from(kept.box, 'base64'))
  const outcome: unknown = JSON.parse(secret.toString())
  assert(isApiKeyMade(outcome), 'only answers that show a key are sealed')
  return outcome
}

/** The row is a digest of caller and Idempotency-Key: a box that is moved to another row does not open there. */
function sealedPlaceOf(row: Buffer): SealedPlace {
  return { purpose: 'strandfast/kept-answer/v1', owner: row }
}

/** Evaluated after the commit, so that a key which the same commit deleted is not shown as existing. */
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
  const row = state.store.apiKeys.find(outcome.row.keyId)
  return { ...outcome, row: row ?? outcome.row, live: row !== undefined, replayed: true }
}
