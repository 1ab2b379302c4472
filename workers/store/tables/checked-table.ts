import type { RangeOptions } from 'lmdb'
import { assert } from '../../../src/base/assert.js'
import { ROW_CHECKSUM_BYTES, isWholeRow, rowOf } from '../../../src/store-files/row-checksum.js'

/** What the store uses of a table of LMDB, binary keys and values; a memtable in front of one has the same. */
export interface Table {
  get(key: Buffer): Buffer | undefined
  /** The same without a copy: valid until the next read of the environment. */
  getBinaryFast(key: Buffer): Buffer | undefined
  /** @returns false when the row should be appended and does not come after all others */
  putSync(key: Buffer, value: Buffer, options?: { append: boolean }): unknown
  removeSync(key: Buffer): unknown
  getRange(range?: RangeOptions): Iterable<{ key: Buffer; value: Buffer }>
  getKeys(range?: RangeOptions): Iterable<Buffer>
  getKeysCount(range?: RangeOptions): number
  getStats(): object
}

/** The longest key that LMDB accepts with pages of 4,096 bytes; for a longer one it throws. */
const KEY_BYTES_MAX = 1_978

/**
 * A table whose rows end in a crc32 over key and value, so that a row that was damaged on disk is never served
 * (docs/adr/0024-damage.md). All reads and moves of rows go through it and see values without the checksum. Records and
 * the hash index are not stored this way: a record has its own checksum, and an index only leads to records.
 */
export class CheckedTable {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  /** The table with its rows as they are stored, for copying them without a check. */
  get raw(): Table {
    return this.#table
  }

  /** A row; a key that is too long for LMDB has none. @throws Error when the row is damaged */
  get(key: Buffer): Buffer | undefined {
    if (key.length > KEY_BYTES_MAX) return undefined
    const row = this.#table.get(key)
    return row === undefined ? undefined : checkedValue(key, row)
  }

  /**
   * The same for an answer that may be "not found": if the row is missing, its neighbours are checked.
   * @throws Error also when the row may exist under a damaged key
   */
  find(key: Buffer): Buffer | undefined {
    const value = this.get(key)
    if (value === undefined && key.length <= KEY_BYTES_MAX) this.assertNone(key)
    return value
  }

  /**
   * Asserts that there is no row with this key, nor one that had it before a bit of its key or of a page above it
   * flipped. A search for a lost key ends beside the damaged row, or in a page whose rows are no neighbours of the key,
   * so it is enough to check one row on each side (docs/adr/0024-damage.md).
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

  /** Appends a row after all others: pages are filled and not split. @returns false when it does not come after them */
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

  /** Keys in order, of rows whose checksum holds: it covers the key, too. */
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
