import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'

/*
 * Keys and small values of the shard's tables. Numbers are big-endian, so that LMDB's byte order is the
 * numeric order (docs/adr/0002-storage-layout.md).
 */

/**
 * The number of the first imported block. Imported records keep their clocks, but global streams and the sink
 * rely on the clock order of the shard's blocks. So imported blocks are numbered from here on, in another
 * table (docs/adr/0022-import.md). A location is a block number times 65,536 plus a position and must be an
 * exact integer in a double, so block numbers stay below 2^37.
 */
export const importedBlocksFrom = 2 ** 36

/** Whether a block contains imported records. */
export function isImportedBlock(blockNo: number): boolean {
  return blockNo >= importedBlocksFrom
}

/** Key of a block: its number, u48. */
export function blockKey(blockNo: number): Buffer {
  const key = Buffer.allocUnsafe(6)
  key.writeUIntBE(blockNo, 0, 6)
  return key
}

/** Key of a strand run: agent number u32, seq of its first record u48. */
export function runKey(agentNo: number, seq: number): Buffer {
  const key = Buffer.allocUnsafe(10)
  key.writeUInt32BE(agentNo, 0)
  key.writeUIntBE(seq, 4, 6)
  return key
}

/** Key of a mutation: agent number u32, seq of the record u48, seq of the mutation's own record u48. */
export function mutationKey(agentNo: number, targetSeq: number, mutationSeq: number): Buffer {
  const key = Buffer.allocUnsafe(16)
  key.writeUInt32BE(agentNo, 0)
  key.writeUIntBE(targetSeq, 4, 6)
  key.writeUIntBE(mutationSeq, 10, 6)
  return key
}

/** Key of an agent's name: its number u32. */
export function agentNoKey(agentNo: number): Buffer {
  const key = Buffer.allocUnsafe(4)
  key.writeUInt32BE(agentNo, 0)
  return key
}

/** Key of an expiry: Unix milliseconds u48, then the key of the row that expires. */
export function expiryKey(expiresAtMs: number, subject: Uint8Array): Buffer {
  const key = Buffer.allocUnsafe(6 + subject.length)
  // A time of a changed row that does not fit is later than all others.
  const fits = Number.isSafeInteger(expiresAtMs) && expiresAtMs >= 0 && expiresAtMs <= seqMax
  key.writeUIntBE(fits ? expiresAtMs : seqMax, 0, 6)
  key.set(subject, 6)
  return key
}

/** The greatest seq or time that fits a key. */
export const seqMax = 2 ** 48 - 1

/** The value of a row; undefined if it is not JSON, as a changed row can be. */
export function jsonOf(row: Uint8Array): unknown {
  try {
    return JSON.parse(asBuffer(row).toString())
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Consecutive records of one agent in one block. */
export interface StrandRun {
  blockNo: number
  /** HLC of the first record. */
  ms: number
  counter: number
  /** Body bytes of the strand up to the last record of this run. */
  strandBytes: number
  /** Positions in the block, as pairs: first position, count. */
  positionRanges: number[]
}

/** A run with the seq of its first record. */
export interface FoundRun extends StrandRun {
  firstSeq: number
}

/** Value of a strand run: block u48, ms u48, counter u16, bytes u48, then u16 pairs. */
export function encodeRun(run: StrandRun): Buffer {
  const value = Buffer.allocUnsafe(20 + 2 * run.positionRanges.length)
  value.writeUIntBE(run.blockNo, 0, 6)
  value.writeUIntBE(run.ms, 6, 6)
  value.writeUInt16BE(run.counter, 12)
  value.writeUIntBE(run.strandBytes, 14, 6)
  for (let index = 0; index < run.positionRanges.length; index++) {
    value.writeUInt16BE(run.positionRanges[index] ?? 0, 20 + 2 * index)
  }
  return value
}

export function decodeRun(value: Buffer): StrandRun {
  assert(value.length >= 24 && value.length % 4 === 0, 'a strand run is whole')
  const positionRanges: number[] = []
  for (let at = 20; at < value.length; at += 2) positionRanges.push(value.readUInt16BE(at))
  return {
    blockNo: value.readUIntBE(0, 6),
    ms: value.readUIntBE(6, 6),
    counter: value.readUInt16BE(12),
    strandBytes: value.readUIntBE(14, 6),
    positionRanges,
  }
}

/** The number of records in a run. */
export function runLength(run: StrandRun): number {
  let length = 0
  for (let index = 1; index < run.positionRanges.length; index += 2) length += run.positionRanges[index] ?? 0
  return length
}

/** The position in the block of the run's record at `offset` (from 0). */
export function positionInRun(run: StrandRun, offset: number): number {
  let left = offset
  for (let index = 0; index < run.positionRanges.length; index += 2) {
    const count = run.positionRanges[index + 1] ?? 0
    if (left < count) return (run.positionRanges[index] ?? 0) + left
    left -= count
  }
  throw new Error(`The run has no record at offset ${offset}`)
}

/**
 * A record's location as one number: block number and position in it (a block has at most 65,536 positions).
 */
export function packLocation(blockNo: number, position: number): number {
  return blockNo * 65_536 + position
}

export function unpackLocation(location: number): { blockNo: number; position: number } {
  return { blockNo: Math.floor(location / 65_536), position: location % 65_536 }
}
