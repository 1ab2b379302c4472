import type { RangeOptions } from 'lmdb'
import SortedTree from 'sorted-btree'
import { assert } from '../../../src/base/assert.js'
import type { Table } from '../tables/checked-table.js'
import { changeBytes, type RowChange } from './row-change.js'

/** Bytes that a row in the memtable takes beside key and value, roughly. */
const ROW_BYTES = 128

/** A row that LMDB does not have yet; without a value, LMDB may still have a row that is removed. */
interface Row {
  key: Buffer
  value: Buffer | undefined
}

/**
 * The rows of a shard that the log has and LMDB has not, by table. Reads look here first; the flush moves all of it.
 * While it does, what is put goes to LMDB at once.
 */
export class Memtable {
  readonly #tables = new Map<number, MemtableOfTable>()
  /** Changes since the last segment, in order. */
  #changes: RowChange[] = []
  #bytes = 0
  #direct = false

  /** Bytes that its rows take, roughly. */
  get bytes(): number {
    return this.#bytes
  }

  /** Puts itself in front of a table. @param id as in table-ids.ts */
  over(table: Table, id: number): Table {
    const own = new MemtableOfTable(table, (key, value) => {
      if (this.#direct) return false
      const change = { table: id, key, value }
      this.#changes.push(change)
      this.#bytes += changeBytes(change) + ROW_BYTES
      return true
    })
    this.#tables.set(id, own)
    return own
  }

  /** Takes a change that the log has. @throws Error for a table that this version does not know */
  replay(change: RowChange): void {
    const table = this.#tables.get(change.table)
    assert(table !== undefined, 'the log has rows of known tables')
    table.set(change.key, change.value)
    this.#bytes += changeBytes(change) + ROW_BYTES
  }

  /** A row as it is now, of a table by its number. */
  row(table: number, key: Buffer): Buffer | undefined {
    return this.#tables.get(table)?.get(key)
  }

  /** The changes since it was last called, in order: what the next segment holds. */
  takeChanges(): RowChange[] {
    const changes = this.#changes
    this.#changes = []
    return changes
  }

  /**
   * Moves all rows to LMDB, within the caller's transaction, and has `rest` write there at once. Nothing is forgotten
   * before `forget`: the transaction may fail.
   */
  move(rest: () => void): void {
    this.#direct = true
    try {
      for (const table of this.#tables.values()) table.move()
      rest()
    } finally {
      this.#direct = false
    }
  }

  /** Forgets its rows, which LMDB has. */
  forget(): void {
    for (const table of this.#tables.values()) table.forget()
    this.#bytes = 0
  }
}

/** Notes a change for the log. @returns false when it has to go to LMDB at once */
type Note = (key: Buffer, value: Buffer | undefined) => boolean

/** A table of LMDB with the rows in front of it that it does not have yet. */
class MemtableOfTable implements Table {
  readonly #table: Table
  readonly #note: Note
  /** By the bytes of the key as characters, whose order is the order of the bytes. */
  readonly #rows = new SortedTree.default<string, Row>(undefined, inOrder)
  /** The last key of LMDB's table, as far as it was asked since the last flush. */
  #lastKey: { key: Buffer | undefined } | undefined

  constructor(table: Table, note: Note) {
    this.#table = table
    this.#note = note
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
    // Whoever asked may use the memory of the key again.
    const kept = Buffer.from(key)
    if (options?.append === true && !this.#isLast(key)) return false
    if (!this.#note(kept, value)) return this.#table.putSync(key, value, options)
    this.set(kept, value)
    return true
  }

  removeSync(key: Buffer): unknown {
    const kept = Buffer.from(key)
    if (!this.#note(kept, undefined)) return this.#table.removeSync(key)
    this.set(kept, undefined)
    return true
  }

  getRange(range: RangeOptions = {}): Iterable<{ key: Buffer; value: Buffer }> {
    return this.#rows.isEmpty ? this.#table.getRange(range) : this.#merged(range)
  }

  getKeys(range: RangeOptions = {}): Iterable<Buffer> {
    return this.#rows.isEmpty ? this.#table.getKeys(range) : keysOf(this.#merged(range))
  }

  getKeysCount(range: RangeOptions = {}): number {
    let count = this.#table.getKeysCount(range)
    for (const { key, value } of this.#own(range)) {
      const kept = this.#table.getBinaryFast(key) !== undefined
      if (kept !== (value !== undefined)) count += kept ? -1 : 1
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
      // Appending splits no page, so that no copy of a body stays behind in a half (docs/adr/0015-erasure.md).
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
    const own = this.#rows.maxKey()
    const behindOwn = own === undefined || key.toString('latin1') > own
    if (behindOwn && (this.#lastKey.key === undefined || key.compare(this.#lastKey.key) > 0)) return true
    // Those rows may be removed by now.
    for (const last of this.getKeys({ reverse: true, limit: 1 })) return key.compare(last) > 0
    return true
  }

  /** Rows of both, in order, those here in the place of LMDB's. */
  *#merged({ limit = Infinity, ...range }: RangeOptions): Generator<{ key: Buffer; value: Buffer }> {
    const sign = range.reverse === true ? -1 : 1
    const own = this.#own(range)
    let next = own.next()
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
        next = own.next()
      }
      if (replaced) continue
      yield row
      if (--left <= 0) return
    }
    for (; next.done !== true; next = own.next()) {
      const { key, value } = next.value
      if (value === undefined) continue
      yield { key, value }
      if (--left <= 0) return
    }
  }

  /**
   * Rows that are here, in the order asked for. Each is looked for anew, so that what the caller puts meanwhile
   * disturbs nothing.
   */
  *#own({ start, end, reverse = false, inclusiveEnd = false }: RangeOptions): Generator<Row> {
    const rows = this.#rows
    const last = textOf(end)
    let found = firstOf(rows, textOf(start), reverse)
    while (found !== undefined) {
      const [at, row] = found
      if (last !== undefined) {
        const order = reverse ? inOrder(last, at) : inOrder(at, last)
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

function inOrder(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
