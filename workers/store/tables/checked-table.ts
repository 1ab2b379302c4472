import type { RangeOptions } from 'lmdb'
import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { ROW_CHECKSUM_BYTES, isWholeRow, rowOf } from '../../../src/store-files/row-checksum.js'

/** A table with binary keys and values: one of LMDB, or one with a memtable in front of it. */
export interface Table {
  get(key: Buffer): Buffer | undefined
  /** Like `get`, but without a copy: the value is valid until the next read of the environment. */
  getBinaryFast(key: Buffer): Buffer | undefined
  /** @returns false if the row should be appended but does not come after all others */
  putSync(key: Buffer, value: Buffer, options?: { append: boolean }): unknown
  removeSync(key: Buffer): unknown
  getRange(range?: RangeOptions): Iterable<{ key: Buffer; value: Buffer }>
  getKeys(range?: RangeOptions): Iterable<Buffer>
  getKeysCount(range?: RangeOptions): number
  getStats(): object
}

/** The longest key that LMDB accepts with pages of 4,096 bytes; for a longer one, LMDB throws. */
export const keyBytesMax = 1_978

/**
 * A table whose rows end in a crc32 over key and value, so that a damaged row is never served
 * (docs/adr/0024-damage.md). Callers see values without the checksum. Blocks and the hash index are not
 * stored this way: each record has a checksum, and the parts of the index have their own.
 */
export class CheckedTable {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  /** The underlying table, whose rows include their checksums. */
  get raw(): Table {
    return this.#table
  }

  /**
   * A row; `undefined` if there is none or the key is too long for LMDB.
   * @throws Error if the row is damaged
   */
  get(key: Buffer): Buffer | undefined {
    if (key.length > keyBytesMax) return undefined
    const row = this.#table.get(key)
    return row === undefined ? undefined : checkedValue(key, row)
  }

  /** Like `get`, but also `undefined` if the row is damaged: for rows that are derived from others. */
  ifWhole(key: Buffer): Buffer | undefined {
    const row = this.#table.get(key)
    return row !== undefined && isWholeRow(key, row) ? valueOf(row) : undefined
  }

  /**
   * Like `get`, but if the row is missing, its neighbours are checked, so that "not found" is certain.
   * @throws Error also if the row may exist under a damaged key
   */
  find(key: Buffer): Buffer | undefined {
    const value = this.get(key)
    if (value === undefined && key.length <= keyBytesMax) this.assertNone(key)
    return value
  }

  /**
   * Asserts that no row has this key, or had it before a bit flipped in its key or in a page above it. A
   * search for a lost key ends next to the damaged row, or in a page whose rows are out of order with the
   * key, so it is enough to check one row on each side (docs/adr/0024-damage.md).
   * @throws Error if a neighbour is damaged or out of order
   */
  assertNone(key: Buffer): void {
    for (const reverse of [false, true]) {
      for (const { key: next } of this.getRange({ start: key, reverse, limit: 1 })) {
        const order = next.compare(key)
        assert(reverse ? order < 0 : order > 0, 'the rows around a missing key are in order')
      }
    }
  }

  put(key: Buffer, value: Buffer): void {
    this.#table.putSync(key, rowOf(key, value))
  }

  /** Appends a row without splitting a page. @returns false if it does not come after all others */
  append(key: Buffer, value: Buffer): boolean {
    const put: unknown = this.#table.putSync(key, rowOf(key, value), { append: true })
    return put === true
  }

  remove(key: Buffer): void {
    this.#table.removeSync(key)
  }

  /** Rows in order. @throws Error at a damaged row */
  *getRange(range: RangeOptions = {}): Generator<{ key: Buffer; value: Buffer }> {
    for (const { key, value } of this.#table.getRange(range)) yield { key, value: checkedValue(key, value) }
  }

  /**
   * Keys in order. Checks the rows, because their checksums cover the keys.
   * @throws Error at a damaged row
   */
  *getKeys(range: RangeOptions = {}): Generator<Buffer> {
    for (const { key } of this.getRange(range)) yield key
  }

  /** The number of rows in a range, at most `countedRowsMax`. The rows are not read. */
  countSome(range: RangeOptions): number {
    let count = 0
    for (const _key of this.#table.getKeys({ ...range, limit: limits.countedRowsMax })) count++
    return count
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
  return valueOf(row)
}

function valueOf(row: Buffer): Buffer {
  return row.subarray(0, row.length - ROW_CHECKSUM_BYTES)
}
