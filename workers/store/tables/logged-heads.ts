import { assert } from '../../../src/base/assert.js'
import type { LoggedHead } from '../../../src/strand/server-log.js'
import type { Environment } from '../environment.js'
import type { TableSpec } from '../table-spec.js'
import { HashIndex, prefixOf, type HashIndexOptions } from '../hash-index/hash-index.js'
import { packLocation, unpackLocation } from './tables.js'

/** A logged head, and the seq of its record in the server log. */
export interface FoundHead {
  head: LoggedHead
  logSeq: number
}

const HASH_BYTES = 32
const SIZE_BYTES = 6

/** The row of a record in the server log without heads. */
const noHead = Buffer.alloc(0)

/**
 * An index from strands to the records of the server log that contain their heads. It is in the shard of the
 * log, and can be rebuilt from it (docs/adr/0023-server-log.md).
 *
 * The rows are in the order of the log, and a hash index finds the rows of a strand. If rows were ordered by
 * strand, LMDB would write a page for each head, because the strands in one record are far apart.
 */
export class LoggedHeads {
  readonly #environment: Environment
  readonly #sizes: HashIndexOptions
  /** Opened at the first use, because only one shard has the log. */
  #opened: HashIndex | undefined

  /** @param sizes smaller in tests */
  constructor(environment: Environment, sizes: HashIndexOptions = {}) {
    this.#environment = environment
    this.#sizes = sizes
  }

  /** Whether an idle shard should continue to merge the index. */
  get needsStep(): boolean {
    return this.#opened?.needsStep ?? false
  }

  /** The seq of the last record of the log in the index; 0, that of the genesis record, if there is none. */
  get lastIndexed(): number {
    for (const key of this.#environment.toldHeads.getKeys({ reverse: true, limit: 1 })) {
      return unpackLocation(locationOf(key)).blockNo
    }
    return 0
  }

  /** The newest logged head of a strand; with `size`, in the first `size` records of the log. */
  newest(strand: string, size = Infinity): FoundHead | undefined {
    const prefix = prefixOf(strand)
    let below = packLocation(size, 0)
    for (;;) {
      const location = this.#index.newestBelow(prefix, below)
      if (location === undefined) return undefined
      assert(location < below, 'each step goes back in the log')
      const value = this.#environment.toldHeads.get(rowKey(location))
      assert(value !== undefined, 'an indexed head exists')
      if (value.toString('hex', 0, HASH_BYTES) === strand) {
        return { head: headOf(value), logSeq: unpackLocation(location).blockNo }
      }
      // Another strand with the same prefix.
      below = location
    }
  }

  /** Appends the heads of new records of the log, by the seq of the record. */
  put(records: ReadonlyMap<number, readonly LoggedHead[]>): void {
    if (records.size === 0) return
    const index = this.#index
    for (const [logSeq, heads] of records) {
      if (heads.length === 0) this.#append(packLocation(logSeq, 0), noHead)
      for (const [position, head] of heads.entries()) {
        const location = packLocation(logSeq, position)
        this.#append(location, rowValue(head))
        index.add(prefixOf(head.strand), location)
      }
    }
  }

  /** Does the index's part of a commit, within the caller's transaction. */
  step(): void {
    this.#opened?.commitStep()
  }

  /** Writes the index entries in memory, within the caller's transaction. */
  flush(): void {
    this.#opened?.flush()
  }

  get #index(): HashIndex {
    this.#opened ??= this.#open()
    return this.#opened
  }

  /** Opens the index, and adds the rows after its last run again. */
  #open(): HashIndex {
    const { toldHeads, toldStrands } = this.#environment
    const index = HashIndex.open(toldStrands, this.#sizes)
    for (const { key, value } of toldHeads.getRange({ start: rowKey(index.coveredUpTo + 1) })) {
      if (value.length > 0) index.add(prefixOf(value.toString('hex', 0, HASH_BYTES)), locationOf(key))
    }
    return index
  }

  #append(location: number, value: Buffer): void {
    const put = this.#environment.toldHeads.append(rowKey(location), value)
    assert(put, 'heads are appended in the order of the log')
  }
}

/** Key of a head: seq in the log u48, position in that record u16. */
function rowKey(location: number): Buffer {
  const { blockNo: logSeq, position } = unpackLocation(location)
  const key = Buffer.allocUnsafe(8)
  key.writeUIntBE(logSeq, 0, 6)
  key.writeUInt16BE(position, 6)
  return key
}

function locationOf(key: Buffer): number {
  return packLocation(key.readUIntBE(0, 6), key.readUInt16BE(6))
}

/** Value of a head: strand (32 bytes), size u48, hash (32 bytes). */
function rowValue({ strand, size, hash }: LoggedHead): Buffer {
  const value = Buffer.allocUnsafe(HASH_BYTES + SIZE_BYTES + HASH_BYTES)
  value.write(strand, 0, 'hex')
  value.writeUIntBE(size, HASH_BYTES, SIZE_BYTES)
  value.write(hash, HASH_BYTES + SIZE_BYTES, 'hex')
  return value
}

function headOf(value: Buffer): LoggedHead {
  return {
    strand: value.toString('hex', 0, HASH_BYTES),
    size: value.readUIntBE(HASH_BYTES, SIZE_BYTES),
    hash: value.toString('hex', HASH_BYTES + SIZE_BYTES),
  }
}

/**
 * Adds any number of missing rows to the index.
 * @param step called after a limited number of rows; runs the given function within a transaction
 */
export function indexHeads({ toldHeads, toldStrands }: Environment, step: (share: () => void) => void): void {
  const index = HashIndex.open(toldStrands)
  let added = 0
  for (const { key, value } of toldHeads.getRange({ start: rowKey(index.coveredUpTo + 1) })) {
    if (value.length === 0) continue
    index.add(prefixOf(value.toString('hex', 0, HASH_BYTES)), locationOf(key))
    if (++added % STEP_HEADS === 0) step(() => index.commitStep())
  }
  while (index.needsStep) step(() => index.commitStep())
}

/** Heads between two steps of `indexHeads`. */
const STEP_HEADS = 8_192

/** The heads in records of the server log, by the seq of the record. */
export const loggedHeads: TableSpec<LoggedHeads, Map<number, readonly LoggedHead[]>> = {
  open: (environment) => new LoggedHeads(environment),
  changes: () => new Map(),
  // They are reserved with their records.
  rows: () => 0,
  indexed: (changes) => [...changes.values()].reduce((sum, heads) => sum + heads.length, 0),
  put: (opened, changes) => opened.put(changes),
  index: (opened) => opened,
}
