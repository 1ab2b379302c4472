import { createHash } from 'node:crypto'
import { limits } from '../../../src/base/limits/limits.js'
import type { IdempotentOutcome, PendingAnswer } from '../write-set.js'
import type { Environment } from '../environment.js'
import { expiryKey } from './tables.js'

/** An answer that was given under an Idempotency-Key. */
export interface KeptAnswer {
  /** Digest of the request: another request under the same key is refused. */
  digest: string
  /** Digest of what its JSON says, however it is written; absent where the body is not one JSON value. */
  content?: string
  outcome: IdempotentOutcome
  expiresAtMs: number
  /** Where the key's agent is placed (src/strand/placement.ts), which the key of the row does not show. */
  place: number
}

/**
 * How many expired keys one commit removes beside as many as it adds, so that no commit has to remove a day's worth.
 */
const SWEEP_KEYS_MAX = 64

const LIFETIME_MS = limits.idempotencyHours * 3_600_000

/**
 * The key of the row for a caller's Idempotency-Key: 32 bytes. Keys belong to an agent: two agents may live on
 * different shards, and neither shard could know that a key was used for the other agent.
 */
export function idempotencyRow(caller: string, agent: string, key: string): Buffer {
  return createHash('sha256').update(`${caller}\n${agent}\n${key}`).digest()
}

/** Reads a stored answer. */
export function keptAnswerOf(value: Buffer): KeptAnswer {
  return JSON.parse(value.toString()) as KeptAnswer
}

/** Answers by Idempotency-Key, kept for a day, in the transaction of their record (docs/adr/0008-idempotency.md). */
export class IdempotencyTable {
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  /** The answer under a key, unless it has expired. */
  find(row: Buffer, nowMs: number): KeptAnswer | undefined {
    const value = this.#environment.idempotency.get(row)
    if (value === undefined) return undefined
    const kept = keptAnswerOf(value)
    return kept.expiresAtMs > nowMs ? kept : undefined
  }

  /** Writes answers and removes some that have expired, within the caller's transaction. */
  put(answers: Iterable<PendingAnswer>, nowMs: number): void {
    const expiresAtMs = nowMs + LIFETIME_MS
    let added = 0
    for (const { key, digest, content, place, kept: outcome } of answers) {
      added++
      const kept: KeptAnswer = {
        digest,
        ...(content !== undefined && { content }),
        outcome: outcome(),
        expiresAtMs,
        place,
      }
      this.#environment.idempotency.put(key, Buffer.from(JSON.stringify(kept)))
      this.#environment.expiries.put(expiryKey(expiresAtMs, key), Buffer.alloc(0))
    }
    if (added > 0) this.#sweep(nowMs, added + SWEEP_KEYS_MAX)
  }

  #sweep(nowMs: number, limit: number): void {
    const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs, Buffer.alloc(0)) }
    const over = [...this.#environment.expiries.getKeys({ ...range, limit })]
    for (const key of over) {
      const row = key.subarray(6)
      const value = this.#environment.idempotency.get(row)
      // A key that was used again after its expiry has a later one.
      const kept = value === undefined ? undefined : keptAnswerOf(value)
      if (kept !== undefined && kept.expiresAtMs <= nowMs) this.#environment.idempotency.remove(row)
      this.#environment.expiries.remove(key)
    }
  }
}
