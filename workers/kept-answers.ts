import { refuse } from '../src/base/errors.js'
import type { Outcome } from '../src/protocol/messages.js'
import { seal, unseal, type SealedPlace } from '../src/strand/seal.js'
import type { CommitGroup, KeptOutcome } from './commit-group.js'
import type { Decision, ShardState } from './shard-state.js'

/** A write under an idempotency key. */
export interface KeyedRequest {
  /** The store's key for it, made of its caller and key. */
  row: Buffer
  /** What is asked. */
  digest: string
  /** Where the agent is placed that the key belongs to. */
  place: number
}

/**
 * What the request was answered before, by this group or on disk; 422 idempotency_key_reused when another request was
 * (contract.md 2.6); undefined when the key is new.
 */
export function answeredBefore(
  state: ShardState,
  group: CommitGroup,
  { row, digest }: Omit<KeyedRequest, 'place'>,
): Decision | undefined {
  const pending = group.answers.get(row.toString('latin1'))
  const kept = pending === undefined ? state.store.idempotency.find(row, state.clock()) : undefined
  const before = pending ?? kept
  if (before === undefined) return undefined
  if (before.digest !== digest) {
    return refuse(
      'idempotency_key_reused',
      'Expected the request that this Idempotency-Key was first used for',
    )
  }
  if (kept !== undefined) return () => replayed(state, opened(state, row, kept.outcome))
  return pending === undefined ? undefined : () => replayed(state, pending.outcome())
}

/** Keeps an answer in the transaction of what it tells of. */
export function keepAnswer(
  state: ShardState,
  group: CommitGroup,
  { row, digest, place, outcome }: KeyedRequest & { outcome: () => Outcome },
): void {
  const kept = () => closed(state, row, outcome())
  group.answers.set(row.toString('latin1'), { key: row, digest, place, outcome, kept })
}

/** Of an API key only the hash may lie open in the store, so an answer that shows one is sealed. */
function closed(state: ShardState, row: Buffer, outcome: Outcome): KeptOutcome {
  if (outcome.kind !== 'apiKeyMade') return outcome
  const secret = Buffer.from(JSON.stringify(outcome))
  const box = seal(state.masterSeed, { ...placeOf(row), secret }, state.random)
  return { kind: 'sealed', box: box.toString('base64') }
}

function opened(state: ShardState, row: Buffer, kept: KeptOutcome): Outcome {
  if (kept.kind !== 'sealed') return kept
  const outcome: Outcome = JSON.parse(
    unseal(state.masterSeed, placeOf(row), Buffer.from(kept.box, 'base64')).toString(),
  )
  return outcome
}

/** The row is a digest of caller and Idempotency-Key: a box that is moved to another row does not open there. */
function placeOf(row: Buffer): SealedPlace {
  return { purpose: 'strandfast/kept-answer/v1', owner: row }
}

/** Told after the commit, so that a key which the same commit deleted is not called live. */
function replayed(state: ShardState, outcome: Outcome): Outcome {
  switch (outcome.kind) {
    case 'reply':
    case 'ingested':
      return { ...outcome, replayed: true }
    case 'apiKeyMade':
      return { ...outcome, live: state.store.hasApiKey(outcome.row.keyId), replayed: true }
    default:
      return outcome
  }
}
