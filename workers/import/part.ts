import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { CheckedRecords, EffectAt } from '../../src/protocol/import-messages.js'
import type { Steps, Turn } from '../shard/state.js'
import { blockCount, recordAt, type StoredRecord } from '../store/tables/record-codec.js'
import { appendFileSync } from 'node:fs'
import { isLackOfSpace } from '../../src/base/durable-file.js'
import { partHead } from '../../src/protocol/import-parts.js'

/** Records that are read between two checks of the time. */
const RECORDS_AT_ONCE = 128

/** Checked records of an export, as the reader of the pool returned them, by their seq. */
export class CheckedPart {
  readonly firstSeq: number
  readonly lastSeq: number
  /** The new records; all of them before `dropUntil`. */
  records: readonly StoredRecord[]
  /** The key in force at the first of the new ones. */
  key: string
  readonly #all: readonly StoredRecord[]
  readonly #effects: ReadonlyMap<number, EffectAt>
  readonly #commitments: ReadonlyMap<number, string>

  private constructor(
    all: readonly StoredRecord[],
    { firstSeq, lastSeq, key, effects, commitments }: CheckedRecords,
  ) {
    assert(all.length === lastSeq - firstSeq + 1, 'a part has no gaps')
    this.#all = all
    this.records = all
    this.firstSeq = firstSeq
    this.lastSeq = lastSeq
    this.key = key
    this.#effects = new Map(effects.map((one) => [one.seq, one]))
    this.#commitments = new Map(commitments)
  }

  /** Reads a part at once. */
  static of(records: CheckedRecords): CheckedPart {
    const count = blockCount(records.chunk)
    const all = Array.from({ length: count }, (_none, place) => recordAt(records.chunk, place))
    return new CheckedPart(all, records)
  }

  /** Reads a part turn by turn. */
  static *read(records: CheckedRecords, turn: Turn): Steps<CheckedPart> {
    const { chunk } = records
    const count = blockCount(chunk)
    const all: StoredRecord[] = []
    for (let place = 0; place < count; place++) {
      all.push(recordAt(chunk, place))
      if (place % RECORDS_AT_ONCE === RECORDS_AT_ONCE - 1 && turn.spent()) yield
    }
    return new CheckedPart(all, records)
  }

  get empty(): boolean {
    return this.records.length === 0
  }

  /** The effects of the new records, in their order. */
  get effects(): EffectAt[] {
    const [first] = this.records
    return first === undefined ? [] : [...this.#effects.values()].filter(({ seq }) => seq >= first.seq)
  }

  /** Drops the records up to a seq: they exist already. */
  dropUntil(seq: number): void {
    this.records = this.#all.filter((one) => one.seq > seq)
    for (const effect of this.#effects.values()) {
      if (effect.kind === 'key' && effect.seq <= seq) this.key = effect.publicKey
    }
  }

  /** The record of that seq, new or not. */
  at(seq: number): StoredRecord | undefined {
    return this.#all[seq - this.firstSeq]
  }

  effectOf(seq: number): EffectAt | undefined {
    return this.#effects.get(seq)
  }

  commitmentOf(seq: number): string | undefined {
    return this.#commitments.get(seq)
  }
}

/** 422 for a record of an export; the front thread, which reads the lines, adds the line. */
export function rejectedAt(seq: number, reason: string): Refusal {
  return refuse('import_rejected', reason, { extra: { seq } })
}

/**
 * Appends a part to the stage file. It is not synced: after a crash the export has to be sent again.
 * @returns false when the disk has no room for it
 */
export function stagePart(path: string, records: CheckedRecords): boolean {
  try {
    appendFileSync(path, partHead(records), { mode: 0o600 })
    appendFileSync(path, records.chunk)
    return true
  } catch (error) {
    if (isLackOfSpace(error)) return false
    throw error
  }
}
