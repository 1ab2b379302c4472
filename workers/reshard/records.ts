import { assert } from '../../src/base/assert.js'
import { compareHlc, laterHlc, type Hlc } from '../../src/strand/hlc.js'
import type { Environment } from '../store/environment.js'
import { inOrder } from '../store/in-order.js'
import type { RowWriter } from '../store/row-mover.js'
import { readClockFloor } from '../store/tables/meta.js'
import {
  blockBytes,
  blockCount,
  blockOf,
  blockOverhead,
  blockRecordsMax,
  rawRecordAt,
  writeRenumbered,
  type RawRecord,
} from '../store/tables/record-codec.js'
import { addPosition } from '../store/tables/strand-runs.js'
import type { Table } from '../store/tables/checked-table.js'
import { blockKey, encodeRun, importedBlocksFrom, runKey, type FoundRun } from '../store/tables/tables.js'
import type { AgentNumber } from '../store/row-move.js'
import type { AgentMap } from './agent-map.js'

export interface RecordMove {
  from: readonly Environment[]
  /** One writer for each new shard. */
  to: readonly RowWriter[]
  agents: AgentMap
  onRecord(): void
}

interface OldRecord {
  shard: number
  blockNo: number
  record: RawRecord
}

/**
 * Moves records as bytes. Runs and index entries of records that were not imported are rebuilt from the new
 * blocks.
 */
export class RecordMover {
  readonly #move: RecordMove
  /** The latest clock reading of the records moved so far, and of the old shards' clock floors. */
  lastHlc: Hlc

  constructor(move: RecordMove) {
    this.#move = move
    this.lastHlc = move.from.map(readClockFloor).reduce(laterHlc)
  }

  /** Merges the logs of all shards, in the order of clocks and, for equal readings, of hashes. */
  moveLogs(): void {
    const { from, to } = this.#move
    const packers = to.map((rows) => new BlockPacker(rows, 'blocks'))
    const logs = from.map(({ blocks }, shard) => recordsOf(blocks, shard))
    for (const old of inOrder(logs, isBefore)) this.#append(packers, old)
    for (const packer of packers) packer.end()
  }

  /**
   * Moves imported records. The records of an old block that move to the same new shard become a block there,
   * with their runs.
   */
  moveImported(): void {
    const packers = this.#move.to.map((rows) => new BlockPacker(rows, 'importedBlocks'))
    for (const [shard, environment] of this.#move.from.entries()) {
      for (const block of environment.importedBlocks.getRange({})) {
        const runs = new Map<number, { to: AgentNumber; run: FoundRun }>()
        for (const old of recordsIn(block, shard)) {
          const { agentNo } = old.record
          const { to, blockNo, position } = this.#append(packers, old)
          const moved = runs.get(agentNo) ?? {
            to,
            run: { ...runAt(environment, old), blockNo, positionRanges: [] },
          }
          addPosition(moved.run, position)
          runs.set(agentNo, moved)
        }
        for (const packer of packers) packer.end()
        for (const { to, run } of runs.values()) this.#putRun(to, run)
      }
    }
  }

  #append(packers: readonly BlockPacker[], { shard, record }: OldRecord) {
    const to = this.#move.agents.find({ shard, no: record.agentNo })
    const packer = packers[to.shard]
    assert(packer !== undefined, 'a record is moved to one of the new shards')
    this.lastHlc = laterHlc(this.lastHlc, record.hlc)
    this.#move.onRecord()
    return { to, ...packer.append(record, to.no) }
  }

  #putRun({ shard, no }: AgentNumber, run: FoundRun): void {
    const row = { table: 'strands', key: runKey(no, run.firstSeq), value: encodeRun(run) } as const
    this.#move.to[shard]?.put(row)
  }
}

/** Packs records into the blocks of a new shard, in the order of `append`. */
class BlockPacker {
  readonly #rows: RowWriter
  readonly #table: 'blocks' | 'importedBlocks'
  #blockNo: number
  /** The records of the current block, and the offset at which each ends. */
  #bytes = Buffer.alloc(blockBytes)
  #ends: number[] = []
  /** The seq after the last record of each agent in it. */
  readonly #nextSeqs = new Map<number, number>()

  constructor(rows: RowWriter, table: 'blocks' | 'importedBlocks') {
    this.#rows = rows
    this.#table = table
    this.#blockNo = table === 'blocks' ? 0 : importedBlocksFrom
  }

  /** Appends a record. @param agentNo its agent's number in the new shard; @returns its new location */
  append(record: RawRecord, agentNo: number): { blockNo: number; position: number } {
    const from = this.#ends.at(-1) ?? 0
    const position = this.#ends.length
    const bytes = blockOverhead(position + 1) + from + record.bytes.length
    // A run has no gaps, but imported records, which are in other blocks, can be between two records of the
    // log.
    const isApart = (this.#nextSeqs.get(agentNo) ?? record.seq) !== record.seq
    if (position > 0 && (bytes > blockBytes || position >= blockRecordsMax || isApart)) {
      this.end()
      return this.append(record, agentNo)
    }
    this.#grow(from + record.bytes.length)
    this.#ends.push(writeRenumbered(record, agentNo, { target: this.#bytes, at: from }))
    this.#nextSeqs.set(agentNo, record.seq + 1)
    return { blockNo: this.#blockNo, position }
  }

  /** Completes the current block. */
  end(): void {
    const end = this.#ends.at(-1)
    if (end === undefined) return
    const value = blockOf(this.#bytes.subarray(0, end), this.#ends)
    this.#rows.append({ table: this.#table, key: blockKey(this.#blockNo), value })
    this.#blockNo += 1
    this.#ends = []
    this.#nextSeqs.clear()
  }

  #grow(bytes: number): void {
    if (bytes <= this.#bytes.length) return
    const larger = Buffer.alloc(bytes)
    this.#bytes.copy(larger)
    this.#bytes = larger
  }
}

function* recordsOf(blocks: Table, shard: number): Generator<OldRecord> {
  for (const block of blocks.getRange({})) yield* recordsIn(block, shard)
}

function* recordsIn({ key, value }: { key: Buffer; value: Buffer }, shard: number): Generator<OldRecord> {
  const blockNo = key.readUIntBE(0, 6)
  const count = blockCount(value)
  for (let position = 0; position < count; position++) {
    yield { shard, blockNo, record: checkedRecord(value, { shard, blockNo, position }) }
  }
}

function checkedRecord(
  block: Buffer,
  { shard, blockNo, position }: { shard: number; blockNo: number; position: number },
): RawRecord {
  try {
    return rawRecordAt(block, position)
  } catch (error) {
    throw new Error(`The stored data is damaged at shard ${shard}, block ${blockNo}, record ${position}`, {
      cause: error,
    })
  }
}

/** The run that begins with an imported record. */
function runAt({ runs }: Environment, { blockNo, record: { agentNo, seq } }: OldRecord): FoundRun {
  const run = runs.before(agentNo, seq)
  if (run === undefined || run.firstSeq !== seq || run.blockNo !== blockNo)
    throw new Error(`No run begins at record ${seq} of agent number ${agentNo} in block ${blockNo}`)
  return run
}

function isBefore({ record: one }: OldRecord, { record: other }: OldRecord): boolean {
  const order = compareHlc(one.hlc, other.hlc)
  return order < 0 || (order === 0 && one.hash < other.hash)
}
