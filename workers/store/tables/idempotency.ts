import { createHash } from 'node:crypto'
import { limits } from '../../../src/base/limits/limits.js'
import { fields, isNumber } from '../../../src/base/shape.js'
import type { IdempotentOutcome, PendingAnswer } from '../write-set.js'
import type { SeqRange } from './erasures.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import { expiryKey, jsonOf } from './tables.js'

/** The stored answer to a request with an Idempotency-Key. */
export interface IdempotentAnswer {
  /** Digest of the request. Another request with the same key is refused. */
  digest: string
  /** Digest of the canonical JSON of the body; absent if the body is not one JSON value. */
  content?: string
  outcome: IdempotentOutcome
  expiresAtMs: number
  /** The records of the request, for which the answer is compared with their erasures; absent if there are none. */
  seqs?: SeqRange
  /** The placement of the agent (src/strand/placement.ts), because the key of the row is a hash. */
  place: number
}

/**
 * A commit removes up to this many expired keys more than it adds, so that no commit has to remove those of a
 * day.
 */
const SWEEP_KEYS_MAX = 64

const isExpiring = fields({ expiresAtMs: isNumber })

const LIFETIME_MS = limits.idempotencyHours * 3_600_000

/**
 * The key of the row for an Idempotency-Key, 32 bytes. Idempotency-Keys are scoped to an agent, because
 * agents may be on different shards, which do not know each other's keys.
 */
export function idempotencyRow(caller: string, agent: string, key: string): Buffer {
  return createHash('sha256').update(`${caller}\n${agent}\n${key}`).digest()
}

/** Decodes a stored answer. */
export function decodeAnswer(value: Buffer): IdempotentAnswer {
  return JSON.parse(value.toString()) as IdempotentAnswer
}

/**
 * Answers by Idempotency-Key, stored for a day, in the same transaction as their record
 * (docs/adr/0008-idempotency.md).
 */
export class IdempotencyTable {
  readonly #environment: Environment
  readonly #setAside: SetAside

  constructor(environment: Environment, setAside: SetAside) {
    this.#environment = environment
    this.#setAside = setAside
  }

  /** The answer for a key; `undefined` if there is none or it has expired. */
  find(row: Buffer, nowMs: number): IdempotentAnswer | undefined {
    const value = this.#environment.idempotency.get(row)
    if (value === undefined) return undefined
    const answer = decodeAnswer(value)
    return answer.expiresAtMs > nowMs ? answer : undefined
  }

  /** Writes answers and removes some expired ones, within the caller's transaction. */
  put(answers: Iterable<PendingAnswer>, nowMs: number): void {
    const expiresAtMs = nowMs + LIFETIME_MS
    let added = 0
    for (const { key, digest, content, seqs, placement: place, storedOutcome: outcome } of answers) {
      added++
      const answer: IdempotentAnswer = {
        digest,
        ...(content !== undefined && { content }),
        ...(seqs !== undefined && { seqs }),
        outcome: outcome(),
        expiresAtMs,
        place,
      }
      this.#environment.idempotency.put(key, Buffer.from(JSON.stringify(answer)))
      this.#environment.expiries.put(expiryKey(expiresAtMs, key), Buffer.alloc(0))
    }
    if (added > 0) this.#sweep(nowMs, added + SWEEP_KEYS_MAX)
  }

  #sweep(nowMs: number, limit: number): void {
    const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs, Buffer.alloc(0)) }
    const expired = [...this.#environment.expiries.getKeys({ ...range, limit })]
    for (const key of expired) {
      const row = key.subarray(6)
      const value = this.#environment.idempotency.get(row)
      // A key that was used again after its expiry has a later expiry.
      const answer = value === undefined ? undefined : jsonOf(value)
      if (isExpiring(answer) && answer.expiresAtMs <= nowMs) this.#environment.idempotency.remove(row)
      else if (value !== undefined && answer === undefined)
        this.#setAside.add(`idempotency ${row.toString('hex')}`, 'It is not JSON, so it does not expire')
      this.#environment.expiries.remove(key)
    }
  }
}
