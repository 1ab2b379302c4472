import { assert } from '../../../src/base/assert.js'
import type { LoggedHead } from '../../../src/strand/server-log.js'
import type { Environment } from '../environment.js'
import { HashIndex, prefixOf, type HashIndexOptions } from '../hash-index/hash-index.js'
import { packLocation, unpackLocation } from './tables.js'

/** A head and the record of the log that names it. */
export interface FoundHead {
  head: LoggedHead
  logSeq: number
}

const HASH_BYTES = 32
const SIZE_BYTES = 6

/** The row of a record of the log that names no head. */
const nothingTold = Buffer.alloc(0)

/**
 * An index from strands to the records of the server log that name their heads. It can be made again from the log
 * (docs/adr/0023-server-log.md) and is in the shard of the log.
 *
 * Heads are rows in the order in which the log names them, and a hash index leads from a strand to its rows. If rows
 * were ordered by strand, LMDB would write a page for each head, since the strands of one record lie far apart.
 */
export class LoggedHeads {
  readonly #environment: Environment
  readonly #sizes: HashIndexOptions
  /** Opened at the first use: only one shard has the log. */
  #opened: HashIndex | undefined

  /** @param sizes for tests, which make them small */
  constructor(environment: Environment, sizes: HashIndexOptions = {}) {
    this.#environment = environment
    this.#sizes = sizes
  }

  /** Whether an idle shard can go on with merging the index. */
  get needsStep(): boolean {
    return this.#opened?.needsStep ?? false
  }

  /** The seq of the last record of the log that is in the index; 0, its genesis record, if none is. */
  get lastIndexed(): number {
    for (const key of this.#environment.toldHeads.getKeys({ reverse: true, limit: 1 })) {
      return unpackLocation(locationOf(key)).blockNo
    }
    return 0
  }

  /** The newest head of a strand that the log names; with `size`, by one of its first `size` records. */
  newest(strand: string, size = Infinity): FoundHead | undefined {
    const prefix = prefixOf(strand)
    let below = packLocation(size, 0)
    for (;;) {
      const location = this.#index.newestBelow(prefix, below)
      if (location === undefined) return undefined
      assert(location < below, 'each look goes further back')
      const value = this.#environment.toldHeads.get(rowKey(location))
      assert(value !== undefined, 'a head that the index names is there')
      if (value.toString('hex', 0, HASH_BYTES) === strand) {
        return { head: headOf(value), logSeq: unpackLocation(location).blockNo }
      }
      // Another strand of the same prefix.
      below = location
    }
  }

  /** Writes the heads of records of the log, in their order and after all others, within the caller's transaction. */
  put(records: ReadonlyMap<number, readonly LoggedHead[]>): void {
    if (records.size === 0) return
    const index = this.#index
    for (const [logSeq, heads] of records) {
      if (heads.length === 0) this.#append(packLocation(logSeq, 0), nothingTold)
      for (const [position, head] of heads.entries()) {
        const location = packLocation(logSeq, position)
        this.#append(location, rowValue(head))
        index.add(prefixOf(head.strand), location)
      }
    }
  }

  /** Does the share of a commit: writes a full index and merges, within the caller's transaction. */
  step(): void {
    this.#opened?.commitStep()
  }

  /** Writes what is only in memory to disk, within the caller's transaction. */
  settle(): void {
    this.#opened?.settle()
  }

  get #index(): HashIndex {
    this.#opened ??= this.#open()
    return this.#opened
  }

  /** Rows after the last run of the index are added to it again. */
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
    assert(put, 'the log tells of heads in the order of its records')
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

/** Value of a head: strand 32 bytes, size u48, hash 32 bytes. */
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
 * Adds rows that the index does not have to it, however many they are.
 * @param step called within bounds of the index, with its share of a transaction
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

/** Heads between two steps of an index that is made anew. */
const STEP_HEADS = 8_192
