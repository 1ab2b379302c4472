import type { Database, RangeOptions } from 'lmdb'
import { assert } from '../../src/base/assert.js'
import { ROW_CHECKSUM_BYTES, isWholeRow, rowOf } from '../../src/base/row-checksum.js'

/** What LMDB takes for a key, with pages of 4,096 bytes; asked for a longer one, it throws. */
const KEY_BYTES_MAX = 1_978

/** A table as LMDB has it: binary keys, binary values. */
export type Table = Database<Buffer, Buffer>

/**
 * A table whose rows end in a crc32 over key and value, so that a row which has changed on the disk is never served
 * (docs/adr/0024-damage.md). Whatever reads or moves rows goes through here and sees values without it. Records and
 * the hash index are not kept so: a record has its own checksum, and an index only leads to records.
 */
export class CheckedTable {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  /** The table with its rows as they are kept: for copying them unread. */
  get raw(): Table {
    return this.#table
  }

  /** A row; none has a key that LMDB would not take, whoever asks for it. @throws Error when the row is damaged */
  get(key: Buffer): Buffer | undefined {
    if (key.length > KEY_BYTES_MAX) return undefined
    const row = this.#table.get(key)
    return row === undefined ? undefined : checkedValue(key, row)
  }

  /**
   * The same for who is told that something is not there: where the row is missing, its neighbours are looked at.
   * @throws Error when it may be there under a damaged key, too
   */
  find(key: Buffer): Buffer | undefined {
    const value = this.get(key)
    if (value === undefined && key.length <= KEY_BYTES_MAX) this.assertNone(key)
    return value
  }

  /**
   * That there is no row with this key, nor one that had it before a bit of its key or of a page above it flipped. Who looks
   * for a key comes out beside the row that has lost it, or in a page where the neighbours are not those of the key: so one
   * row on each side tells (docs/adr/0024-damage.md).
   * @throws Error when a neighbour is damaged, or is no neighbour
   */
  assertNone(key: Buffer): void {
    for (const reverse of [false, true]) {
      for (const { key: next } of this.getRange({ start: key, reverse, limit: 1 })) {
        const order = next.compare(key)
        assert(reverse ? order < 0 : order > 0, 'rows lie in order around the place of one that is not there')
      }
    }
  }

  put(key: Buffer, value: Buffer): void {
    this.#table.putSync(key, rowOf(key, value))
  }

  /** Puts a row behind all others: pages are filled and not split. @returns false when it does not come behind them */
  append(key: Buffer, value: Buffer): boolean {
    const put: unknown = this.#table.putSync(key, rowOf(key, value), { append: true })
    return put === true
  }

  remove(key: Buffer): void {
    this.#table.removeSync(key)
  }

  /** Rows in order. @throws Error at one that is damaged */
  *getRange(range: RangeOptions = {}): Generator<{ key: Buffer; value: Buffer }> {
    for (const { key, value } of this.#table.getRange(range)) yield { key, value: checkedValue(key, value) }
  }

  /** Keys in order, of rows that are whole: a key is as much of what a row says as its value. */
  *getKeys(range: RangeOptions = {}): Generator<Buffer> {
    for (const { key } of this.getRange(range)) yield key
  }

  getKeysCount(range: RangeOptions = {}): number {
    return this.#table.getKeysCount(range)
  }

  getStats(): object {
    return this.#table.getStats()
  }
}

function checkedValue(key: Buffer, row: Buffer): Buffer {
  assert(isWholeRow(key, row), 'a stored row matches its checksum')
  return row.subarray(0, row.length - ROW_CHECKSUM_BYTES)
}
