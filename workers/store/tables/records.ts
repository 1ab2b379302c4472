import { assert } from '../../../src/base/assert.js'
import { compareHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Table } from './checked-table.js'
import { isAfterPosition, type RecordPosition } from '../../../src/strand/record-position.js'
import type { Environment } from '../environment.js'
import { blockCount, leafAt, recordAt, type StoredRecord, viewAt } from './record-codec.js'
import {
  blockKey,
  isImportedBlock,
  positionInRun,
  runKey,
  runLength,
  seqMax,
  type FoundRun,
} from './tables.js'

/*
 * Reads of committed records: pure functions of the environment, shared by shard workers and the reader pool.
 */

/** Where records are read from. */
export type BlockSource = Pick<Environment, 'blocks' | 'importedBlocks' | 'runs'>

export interface StrandEnd {
  record: StoredRecord
  /** Body bytes of the whole strand. */
  strandBytes: number
  /** Bytes that were read from disk. */
  readBytes: number
}

/** The last record of a strand and the size of the strand; `undefined` if it has no records. */
export function strandEnd(environment: Environment, agentNo: number): StrandEnd | undefined {
  const run = environment.runs.before(agentNo, seqMax)
  // A later run with a damaged key would be missed, and the strand would fork there.
  environment.strands.assertNone(runKey(agentNo, seqMax))
  if (run === undefined) return undefined
  const seq = run.firstSeq + runLength(run) - 1
  const block = readBlock(environment, run.blockNo)
  const record = recordOfRun(block, run, { agentNo, seq })
  return { record, strandBytes: run.strandBytes, readBytes: block.length }
}

/** The record of an agent at `seq`; `undefined` if the strand is shorter. */
export function recordBySeq(
  environment: Environment,
  agentNo: number,
  seq: number,
): StoredRecord | undefined {
  const run = environment.runs.before(agentNo, seq)
  if (run === undefined || seq >= run.firstSeq + runLength(run)) return undefined
  return recordOfRun(readBlock(environment, run.blockNo), run, { agentNo, seq })
}

/** The location of the record of an agent at `seq`, which must exist. */
export function recordLocation(
  environment: Environment,
  agentNo: number,
  seq: number,
): { blockNo: number; position: number } {
  const run = environment.runs.before(agentNo, seq)
  assert(run !== undefined, 'a strand has a run for each of its records')
  return { blockNo: run.blockNo, position: positionInRun(run, seq - run.firstSeq) }
}

/** The record at a location from the hash index. */
export function recordAtLocation(environment: Environment, blockNo: number, position: number): StoredRecord {
  return recordAt(readBlock(environment, blockNo), position)
}

/** The block `blockNo`; valid until the next read of the environment. */
export function readBlock(environment: Omit<BlockSource, 'runs'>, blockNo: number): Buffer {
  const block = blockTable(environment, blockNo).getBinaryFast(blockKey(blockNo))
  assert(block !== undefined, 'an indexed block exists')
  // LMDB returns its whole read buffer with a smaller `length`; this subarray really has that length.
  return block.subarray(0, block.length)
}

export function blockTable({ blocks, importedBlocks }: Omit<BlockSource, 'runs'>, blockNo: number): Table {
  return isImportedBlock(blockNo) ? importedBlocks : blocks
}

/**
 * The records of a strand from `fromSeq` on, up (`asc`) or down (`desc`), with one block in memory at a time.
 */
export function* recordsFrom(
  environment: Environment,
  agentNo: number,
  range: { fromSeq: number; order: 'asc' | 'desc' },
): Generator<StoredRecord> {
  for (const run of environment.runs.from(agentNo, range.fromSeq, range.order)) {
    yield* recordsOfRun(environment, run, { agentNo, ...range })
  }
}

function* recordsOfRun(
  environment: Environment,
  run: FoundRun,
  { agentNo, fromSeq, order }: { agentNo: number; fromSeq: number; order: 'asc' | 'desc' },
): Generator<StoredRecord> {
  const last = run.firstSeq + runLength(run) - 1
  const low = order === 'asc' ? Math.max(run.firstSeq, fromSeq) : run.firstSeq
  const high = order === 'asc' ? last : Math.min(last, fromSeq)
  // A copy, because the consumer's next read invalidates the block's buffer.
  const block = Buffer.from(readBlock(environment, run.blockNo))
  const read = (seq: number) => recordOfRun(block, run, { agentNo, seq, read: viewAt })
  if (order === 'asc') for (let seq = low; seq <= high; seq++) yield read(seq)
  else for (let seq = high; seq >= low; seq--) yield read(seq)
}

/** The hashes of the records of a strand from `start` up to but not including `end`, 32 bytes each. */
export function recordHashes(
  environment: BlockSource,
  agentNo: number,
  { start, end }: { start: number; end: number },
): Uint8Array[] {
  const hashes: Uint8Array[] = []
  for (const run of environment.runs.from(agentNo, start, 'asc')) {
    if (run.firstSeq >= end) break
    const block = readBlock(environment, run.blockNo)
    const upTo = Math.min(end, run.firstSeq + runLength(run))
    for (let seq = start + hashes.length; seq < upTo; seq++)
      hashes.push(leafAt(block, positionInRun(run, seq - run.firstSeq), { agentNo, seq }))
  }
  assert(hashes.length === end - start, 'a strand has no gaps')
  return hashes
}

/** The seq of the first record at or after `moment`; one past the end if there is none. */
export function seqAtOrAfter(environment: Environment, agentNo: number, moment: Hlc): number {
  const end = strandEnd(environment, agentNo)
  if (end === undefined) return 0
  let low = 0
  let high = end.record.seq + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const record = recordBySeq(environment, agentNo, middle)
    assert(record !== undefined, 'a strand has no gaps')
    if (compareHlc(record.hlc, moment) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** The record at `seq` in a run. @throws Error if the run has another record there */
function recordOfRun(
  block: Buffer,
  run: FoundRun,
  {
    agentNo,
    seq,
    read = recordAt,
  }: { agentNo: number; seq: number; read?: (block: Buffer, position: number) => StoredRecord },
): StoredRecord {
  const record = read(block, positionInRun(run, seq - run.firstSeq))
  assert(record.agentNo === agentNo && record.seq === seq, 'a strand run leads to its records')
  return record
}

/**
 * The records of the whole shard after a position in its log, in the order of the log, in which the HLC never
 * falls. Without imported records.
 */
export function* blocksAfter(environment: Environment, place: RecordPosition): Generator<StoredRecord> {
  const first = blockBefore(environment, place)
  for (const { value } of environment.blocks.getRange({ start: blockKey(first) })) {
    const block = Buffer.from(value)
    const count = blockCount(block)
    for (let position = 0; position < count; position++) {
      const record = recordAt(block, position)
      if (isAfterPosition(record, place)) yield record
    }
  }
}

/**
 * The last block that begins before `moment`, which may contain records with that reading; 0 if there is
 * none.
 */
function blockBefore(environment: Environment, moment: Hlc): number {
  let low = 0
  let high = 0
  for (const key of environment.blocks.getKeys({ reverse: true, limit: 1 })) high = key.readUIntBE(0, 6)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (compareHlc(recordAt(readBlock(environment, middle), 0).hlc, moment) < 0) low = middle
    else high = middle - 1
  }
  return low
}
