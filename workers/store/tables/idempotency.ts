import { createHash } from 'node:crypto'
import { limits } from '../../../src/base/limits/limits.js'
import {
  anyOf,
  fields,
  isNumber,
  isText,
  listOf,
  members,
  oneOf,
  optional,
  isCounts,
  isKeyNumber,
} from '../../../src/base/shape.js'
import type { Outcome } from '../../../src/protocol/messages.js'
import type { AgentIngested } from '../../../src/protocol/record-messages.js'
import type { SeqRange } from './erasures.js'
import type { Environment } from '../environment.js'
import type { SetAside } from '../set-aside.js'
import type { RowMover } from '../row-move.js'
import { invalidRows } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'
import { isExpired } from './expired.js'
import { checkedRow } from './row-shape.js'
import { type ScanBudget, takeRow } from './scan-budget.js'
import { expiryKey } from './tables.js'

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
 * A commit removes up to this many expired keys more than it adds, and some more bytes, so that no commit has
 * to remove those of a day.
 */
const SWEEP_KEYS_MAX = 64

const LIFETIME_MS = limits.idempotencyHours * 3_600_000

/**
 * The key of the row for an Idempotency-Key, 32 bytes. Idempotency-Keys are scoped to an agent, because
 * agents may be on different shards, which do not know each other's keys.
 */
export function idempotencyRow(caller: string, agent: string, key: string): Buffer {
  return createHash('sha256').update(`${caller}\n${agent}\n${key}`).digest()
}

type StoredAnswer = Omit<IdempotentAnswer, 'place'> & Partial<IdempotentAnswer>

const isOutcome = anyOf(
  fields({ kind: oneOf('reply'), status: isStatus, body: isText }),
  fields({ kind: oneOf('claimed'), drawn: isText }),
  fields({ kind: oneOf('sealed'), box: isText }),
  fields({ kind: oneOf('written'), as: oneOf('record', 'batch') }),
  fields({
    kind: oneOf('ingested'),
    accepted: isKeyNumber,
    rejected: isKeyNumber,
    kept: optional(isKeyNumber),
    duplicates: optional(isKeyNumber),
    rejectedByCode: optional(isCounts),
    faults: listOf(
      fields({ line: isKeyNumber, agent: isText, refusal: fields({ code: isText, detail: isText }) }),
    ),
    agents: listOf(
      members<AgentIngested>({
        agent: isText,
        accepted: isKeyNumber,
        rejected: isKeyNumber,
        firstSeq: isNumber,
        lastSeq: isNumber,
        chainHead: isText,
      }),
    ),
  }),
)

function isStatus(value: unknown): value is number {
  return isKeyNumber(value) && value >= 200 && value <= 599
}

const isStoredAnswer = members<StoredAnswer>({
  digest: isText,
  content: optional(isText),
  outcome: (value): value is IdempotentOutcome => isOutcome(value),
  expiresAtMs: isKeyNumber,
  seqs: optional(
    (value): value is SeqRange => Array.isArray(value) && value.length === 2 && value.every(isKeyNumber),
  ),
  place: optional(isKeyNumber),
})

/** Decodes a stored answer; the first ones have no placement. @throws InvalidRow */
export function decodeAnswer(key: Buffer, value: Buffer): StoredAnswer {
  return checkedRow(`idempotency ${key.toString('hex')}`, value, isStoredAnswer)
}

/** An answer to store under its Idempotency-Key. */
export interface PendingAnswer {
  key: Buffer
  digest: string
  content: string | undefined
  placement: number
  seqs: SeqRange | undefined
  outcome: () => Outcome
  storedOutcome: () => IdempotentOutcome
}

/**
 * An answer as it is stored: the outcome itself; its sealed JSON in base64, if it contains a secret; or how it
 * is made again from the records of the request.
 */
export type IdempotentOutcome =
  | Outcome
  | { kind: 'sealed'; box: string }
  | { kind: 'written'; as: 'record' | 'batch' }

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
  find(row: Buffer, nowMs: number): StoredAnswer | undefined {
    const value = this.#environment.idempotency.get(row)
    if (value === undefined) return undefined
    const answer = decodeAnswer(row, value)
    return answer.expiresAtMs > nowMs ? answer : undefined
  }

  /** Writes answers and removes some expired ones, within the caller's transaction. */
  put(answers: Iterable<PendingAnswer>, nowMs: number): void {
    const expiresAtMs = nowMs + LIFETIME_MS
    let added = 0
    let addedBytes = 0
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
      const value = Buffer.from(JSON.stringify(answer))
      addedBytes += value.length
      this.#environment.idempotency.put(key, value)
      this.#environment.expiries.put(expiryKey(expiresAtMs, key), Buffer.alloc(0))
    }
    const rows = added + SWEEP_KEYS_MAX
    if (added > 0) this.#sweep(nowMs, { rows, bytes: addedBytes + limits.scannedRowBytesMax })
  }

  #sweep(nowMs: number, budget: ScanBudget): void {
    const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs, Buffer.alloc(0)) }
    const expired = [...this.#environment.expiries.raw.getKeys({ ...range, limit: budget.rows })]
    for (const key of expired) {
      if (!takeRow(budget)) return
      const row = key.subarray(6)
      // A key that was used again after its expiry has a later expiry.
      if (isExpired(this.#environment.idempotency, row, { nowMs, setAside: this.#setAside, budget }))
        this.#environment.idempotency.remove(row)
      this.#environment.expiries.remove(key)
    }
  }
}

/**
 * Moves an answer with its current expiry and no earlier one. Answers from before answers had a placement are
 * written to all shards.
 */
const withExpiry: RowMover = ({ key, value }, { shards }) => {
  const { place, expiresAtMs } = decodeAnswer(key, value)
  const to = place === undefined ? Array.from({ length: shards }, (_none, shard) => shard) : [place % shards]
  const expiry = { table: 'expiries', key: expiryKey(expiresAtMs, key), value: Buffer.alloc(0) } as const
  return to.flatMap((shard) => [
    { shard, key, value },
    { shard, ...expiry },
  ])
}

/** Answers to store, by their key in latin1. */
export const idempotency: TableSpec<IdempotencyTable, Map<string, PendingAnswer>> = {
  open: (environment, setAside) => new IdempotencyTable(environment, setAside),
  moves: { idempotency: withExpiry },
  faults: ({ idempotency: table }) => invalidRows(table, decodeAnswer),
  changes: () => new Map(),
  rows: ({ size }) => size,
  put: (opened, changes, nowMs) => opened.put(changes.values(), nowMs),
}
