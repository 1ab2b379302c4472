import type { RangeOptions } from 'lmdb'

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
