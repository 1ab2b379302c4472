import type { RangeOptions } from 'lmdb'
import SortedTree from 'sorted-btree'
import { assert } from '../../../src/base/assert.js'
import { rowCount } from '../environment.js'
import type { Table } from '../tables/checked-table.js'
import { changeBytes, type RowChange } from './row-change.js'

/** Approximate overhead of a row in the memtable, bytes. */
const ROW_BYTES = 128

/** A row that is not in LMDB yet. Without a value, the row is removed but may still be in LMDB. */
interface Row {
  key: Buffer
  value: Buffer | undefined
}

/**
 * The rows of a shard that are in the log but not in LMDB yet, by table. Reads look here first; a flush moves
 * all rows to LMDB. During a flush, puts go directly to LMDB.
 */
export class Memtable {
  readonly #tables = new Map<number, TableMemtable>()
  /** Changes since the last segment, in order. */
  #changes: RowChange[] = []
  #bytes = 0
  #isFlushing = false

  /** Approximate bytes of the rows. */
  get bytes(): number {
    return this.#bytes
  }

  /** Wraps a table, so that the memtable is in front of it. @param id as in store-tables.ts */
  wrap(table: Table, id: number): Table {
    const wrapped = new TableMemtable(table, (key, value) => {
      if (this.#isFlushing) return false
      const change = { table: id, key, value }
      this.#changes.push(change)
      this.#bytes += changeBytes(change) + ROW_BYTES
      return true
    })
    this.#tables.set(id, wrapped)
    return wrapped
  }

  /** Applies a change from the log. @throws Error for a table that this version does not know */
  replay(change: RowChange): void {
    const table = this.#tables.get(change.table)
    assert(table !== undefined, 'the log has rows of known tables')
    table.set(change.key, change.value)
    this.#bytes += changeBytes(change) + ROW_BYTES
  }

  /** The current row of a table, by the number of the table. */
  row(table: number, key: Buffer): Buffer | undefined {
    return this.#tables.get(table)?.get(key)
  }

  /** The changes since the last call, in order: the content of the next segment. */
  takeChanges(): RowChange[] {
    const changes = this.#changes
    this.#changes = []
    return changes
  }

  /**
   * Moves all rows to LMDB, within the caller's transaction, and calls `rest`, whose puts go directly to
   * LMDB. The rows stay in memory until `forget`, because the transaction may fail.
   */
  move(rest: () => void): void {
    this.#isFlushing = true
    try {
      for (const table of this.#tables.values()) table.move()
      rest()
    } finally {
      this.#isFlushing = false
    }
  }

  /** Drops the rows once they are in LMDB. */
  clear(): void {
    for (const table of this.#tables.values()) table.forget()
    this.#bytes = 0
  }
}

/** Adds a change to the next segment. @returns false if it must go directly to LMDB */
type LogChange = (key: Buffer, value: Buffer | undefined) => boolean

/** A table of LMDB, with the rows in front of it that are not in LMDB yet. */
class TableMemtable implements Table {
  readonly #table: Table
  readonly #logChange: LogChange
  /** By the key as a Latin-1 string, whose order is that of the bytes. */
  readonly #rows = new SortedTree.default<string, Row>(undefined, compareText)
  /** The last key of the table in LMDB; undefined if it was not read since the last flush. */
  #lastKey: { key: Buffer | undefined } | undefined

  constructor(table: Table, logChange: LogChange) {
    this.#table = table
    this.#logChange = logChange
  }

  get(key: Buffer): Buffer | undefined {
    const row = this.#rowOf(key)
    return row === undefined ? this.#table.get(key) : row.value
  }

  getBinaryFast(key: Buffer): Buffer | undefined {
    const row = this.#rowOf(key)
    return row === undefined ? this.#table.getBinaryFast(key) : row.value
  }

  putSync(key: Buffer, value: Buffer, options?: { append: boolean }): unknown {
    // The caller may reuse the memory of the key.
    const copy = Buffer.from(key)
    if (options?.append === true && !this.#isLast(key)) return false
    if (!this.#logChange(copy, value)) return this.#table.putSync(key, value, options)
    this.set(copy, value)
    return true
  }

  removeSync(key: Buffer): unknown {
    const copy = Buffer.from(key)
    if (!this.#logChange(copy, undefined)) return this.#table.removeSync(key)
    this.set(copy, undefined)
    return true
  }

  getRange(range: RangeOptions = {}): Iterable<{ key: Buffer; value: Buffer }> {
    return this.#rows.isEmpty ? this.#table.getRange(range) : this.#merged(range)
  }

  getKeys(range: RangeOptions = {}): Iterable<Buffer> {
    return this.#rows.isEmpty ? this.#table.getKeys(range) : keysOf(this.#merged(range))
  }

  getKeysCount(range: RangeOptions = {}): number {
    // LMDB knows the number of all rows, and would walk over those of a range.
    const isWhole = range.start === undefined && range.end === undefined
    let count = isWhole ? rowCount(this.#table) : this.#table.getKeysCount(range)
    for (const { key, value } of this.#rowsIn(range)) {
      const isStored = this.#table.getBinaryFast(key) !== undefined
      if (isStored !== (value !== undefined)) count += isStored ? -1 : 1
    }
    return count
  }

  getStats(): object {
    return this.#table.getStats()
  }

  set(key: Buffer, value: Buffer | undefined): void {
    this.#rows.set(key.toString('latin1'), { key, value })
  }

  move(): void {
    const last = lastKey(this.#table)
    this.#rows.forEachPair((_order, { key, value }) => {
      // Appending splits no page, so no copy of a body remains in the old half (docs/adr/0015-erasure.md).
      const append = last === undefined || key.compare(last) > 0
      if (value === undefined) this.#table.removeSync(key)
      else this.#table.putSync(key, value, append ? { append } : undefined)
    })
  }

  forget(): void {
    this.#rows.clear()
    this.#lastKey = undefined
  }

  #rowOf(key: Buffer): Row | undefined {
    return this.#rows.isEmpty ? undefined : this.#rows.get(key.toString('latin1'))
  }

  #isLast(key: Buffer): boolean {
    this.#lastKey ??= { key: lastKey(this.#table) }
    const lastRow = this.#rows.maxKey()
    const isAfterRows = lastRow === undefined || key.toString('latin1') > lastRow
    if (isAfterRows && (this.#lastKey.key === undefined || key.compare(this.#lastKey.key) > 0)) return true
    // The last rows may have been removed.
    for (const last of this.getKeys({ reverse: true, limit: 1 })) return key.compare(last) > 0
    return true
  }

  /** The rows of both, in order. A row here replaces that of LMDB. */
  *#merged({ limit = Infinity, ...range }: RangeOptions): Generator<{ key: Buffer; value: Buffer }> {
    const sign = range.reverse === true ? -1 : 1
    const rows = this.#rowsIn(range)
    let next = rows.next()
    let left = limit
    if (left <= 0) return
    for (const row of this.#table.getRange(range)) {
      let replaced = false
      while (next.done !== true) {
        const order = sign * next.value.key.compare(row.key)
        if (order > 0) break
        const { key, value } = next.value
        replaced ||= order === 0
        if (value !== undefined) {
          yield { key, value }
          if (--left <= 0) return
        }
        next = rows.next()
      }
      if (replaced) continue
      yield row
      if (--left <= 0) return
    }
    for (; next.done !== true; next = rows.next()) {
      const { key, value } = next.value
      if (value === undefined) continue
      yield { key, value }
      if (--left <= 0) return
    }
  }

  /**
   * The rows here, in the requested order. Each step searches the tree again, so that the caller may put rows
   * during the iteration.
   */
  *#rowsIn({ start, end, reverse = false, inclusiveEnd = false }: RangeOptions): Generator<Row> {
    const rows = this.#rows
    const last = textOf(end)
    let found = firstOf(rows, textOf(start), reverse)
    while (found !== undefined) {
      const [at, row] = found
      if (last !== undefined) {
        const order = reverse ? compareText(last, at) : compareText(at, last)
        if (order > 0 || (order === 0 && !inclusiveEnd)) return
      }
      yield row
      found = reverse ? rows.nextLowerPair(at) : rows.nextHigherPair(at)
    }
  }
}

type Rows = InstanceType<typeof SortedTree.default<string, Row>>

function firstOf(rows: Rows, start: string | undefined, reverse: boolean): [string, Row] | undefined {
  if (start === undefined) return reverse ? rows.nextLowerPair(undefined) : rows.nextHigherPair(undefined)
  return reverse ? rows.getPairOrNextLower(start) : rows.getPairOrNextHigher(start)
}

function* keysOf(rows: Iterable<{ key: Buffer }>): Generator<Buffer> {
  for (const { key } of rows) yield key
}

function lastKey(table: Table): Buffer | undefined {
  for (const key of table.getKeys({ reverse: true, limit: 1 })) return Buffer.from(key)
  return undefined
}

function textOf(key: unknown): string | undefined {
  return Buffer.isBuffer(key) ? key.toString('latin1') : undefined
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
