import { assert } from '../../src/base/assert.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { CheckedRecords, EffectAt } from '../../src/protocol/import-messages.js'
import type { Steps, Turn } from '../shard/state.js'
import { blockCount, recordAt, type StoredRecord } from '../store/tables/record-codec.js'
import { appendFileSync } from 'node:fs'
import { isDiskFull } from '../../src/base/durable-file.js'
import { partHead } from '../../src/protocol/import-parts.js'
import { appendIndex } from './record-index.js'

/** Records that are decoded between two checks of the time. */
const RECORDS_PER_CHECK = 128

/** Records of an export that a reader of the pool has checked, by seq. */
export class CheckedPart {
  readonly firstSeq: number
  readonly lastSeq: number
  /** The new records; before `dropUntil`, all records. */
  records: readonly StoredRecord[]
  /** The current key at the first new record. */
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

  /** Decodes a part in one step. */
  static of(records: CheckedRecords): CheckedPart {
    return new CheckedPart(recordsOf(records), records)
  }

  /** Decodes a part over several turns. */
  static *read(records: CheckedRecords, turn: Turn): Steps<CheckedPart> {
    const { chunk } = records
    const count = blockCount(chunk)
    const all: StoredRecord[] = []
    for (let position = 0; position < count; position++) {
      all.push(recordAt(chunk, position))
      if (position % RECORDS_PER_CHECK === RECORDS_PER_CHECK - 1 && turn.spent()) yield
    }
    return new CheckedPart(all, records)
  }

  get empty(): boolean {
    return this.records.length === 0
  }

  /** The effects of the new records, in order. */
  get effects(): EffectAt[] {
    const [first] = this.records
    return first === undefined ? [] : [...this.#effects.values()].filter(({ seq }) => seq >= first.seq)
  }

  /** Drops the records up to a seq, which exist already. */
  dropUntil(seq: number): void {
    this.records = this.#all.filter((one) => one.seq > seq)
    for (const effect of this.#effects.values()) {
      if (effect.kind === 'key' && effect.seq <= seq) this.key = effect.publicKey
    }
  }

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

function recordsOf({ chunk }: CheckedRecords): StoredRecord[] {
  return Array.from({ length: blockCount(chunk) }, (_none, position) => recordAt(chunk, position))
}

/** 422 for a record of an export. The front thread, which reads the lines, adds the line number. */
export function rejectedAt(seq: number, reason: string): Refusal {
  return refuse('import_rejected', reason, { extra: { seq } })
}

/**
 * Appends a part to the stage file and its index, without a sync: after a crash the export must be sent again.
 * @returns false if the disk is full
 */
export function stagePart(path: string, records: CheckedRecords): boolean {
  try {
    appendFileSync(path, partHead(records), { mode: 0o600 })
    appendFileSync(path, records.chunk)
    appendIndex(path, recordsOf(records))
    return true
  } catch (error) {
    if (isDiskFull(error)) return false
    throw error
  }
}
