import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'
import { limits } from '../../../src/base/limits/limits.js'
import { compareHlc, type Hlc } from '../../../src/strand/hlc.js'
import type { Environment } from '../environment.js'
import { agentNoAt, blockCount, recordInfoAt, rawRecordAt, type StoredRecord } from './record-codec.js'
import { readBlock, strandEnd } from './records.js'
import { agentNoKey, blockKey } from './tables.js'

/*
 * The heads of a shard's strands, for the server log (docs/adr/0023-server-log.md). Pure functions of a view
 * of the store, which read no more of a record than they need.
 */

/** The head of one agent's strand. */
export type ChangedHead = Pick<StoredRecord, 'agentNo' | 'seq' | 'hash'>

/** The heads from one call. */
export interface ChangedHeads {
  heads: ChangedHead[]
  /** The clock reading up to which `heads` is complete. */
  reached: Hlc
  end: boolean
  /** The clock reading before the first block with a damaged record. */
  damagedAfter?: Hlc
}

/**
 * The heads of the agents with records after `after`, from a limited number of blocks: the last record of
 * each agent in them. A record that does not match its checksum is skipped and reported. The head of its
 * agent, which is not known for certain, is then an earlier record.
 */
export function changedHeads(environment: Environment, after: Hlc): ChangedHeads {
  const moved = new Map<number, ChangedHead>()
  const damage: { damagedAfter?: Hlc } = {}
  let reached = after
  let blocks = 0
  let bytes = 0
  const start = blockKey(firstBlock(environment, after))
  for (const { value } of environment.blocks.getRange({ start })) {
    if (blocks >= limits.logScanBlocks || bytes >= limits.logScanBytes || moved.size >= limits.logHeadsMax)
      return { heads: [...moved.values()], reached, end: false, ...damage }
    const last = recordInfoAt(value, blockCount(value) - 1).hlc
    if (compareHlc(last, after) <= 0) continue
    if (!readBlockHeads(moved, value, after)) damage.damagedAfter ??= reached
    reached = last
    blocks++
    bytes += value.length
  }
  return { heads: [...moved.values()], reached, end: true, ...damage }
}

/** A page of heads of all agents, from the agent number `fromNo` on. */
export function allHeads(environment: Environment, fromNo: number): { heads: ChangedHead[]; nextNo: number } {
  const heads: ChangedHead[] = []
  let nextNo = fromNo
  for (const key of environment.names.getKeys({ start: agentNoKey(fromNo), limit: limits.logScanAgents })) {
    const agentNo = key.readUInt32BE(0)
    const end = strandEnd(environment, agentNo)
    assert(end !== undefined, 'an agent has its genesis record')
    heads.push({ agentNo, seq: end.record.seq, hash: end.record.hash })
    nextNo = agentNo + 1
  }
  return { heads, nextNo }
}

/**
 * Reads a block from the end, so that the first record of each agent is its head.
 * @returns whether all records match their checksums
 */
function readBlockHeads(moved: Map<number, ChangedHead>, block: Uint8Array, after: Hlc): boolean {
  const first = firstAfter(block, after)
  const found = new Set<number>()
  // The records of one agent in a commit are adjacent.
  let last = -1
  let whole = true
  for (let position = blockCount(block) - 1; position >= first; position--) {
    const agentNo = agentNoAt(block, position)
    if (agentNo === last || found.has(agentNo)) continue
    const record = wholeRecord(block, position)
    if (record === undefined) {
      whole = false
      continue
    }
    last = agentNo
    found.add(agentNo)
    moved.set(agentNo, { agentNo, seq: record.seq, hash: record.hash })
  }
  return whole
}

/** The position of the first record after `after`; usually the first of the block. */
function firstAfter(block: Uint8Array, after: Hlc): number {
  let position = 0
  while (compareHlc(recordInfoAt(block, position).hlc, after) <= 0) position++
  return position
}

function wholeRecord(block: Uint8Array, position: number): { seq: number; hash: string } | undefined {
  try {
    return rawRecordAt(asBuffer(block), position)
  } catch {
    return undefined
  }
}

/** The last block in commit order that begins at or before `moment`; the first one if none does. */
function firstBlock(environment: Environment, moment: Hlc): number {
  let low = 0
  let high = 0
  const range = { reverse: true, limit: 1 }
  for (const key of environment.blocks.getKeys(range)) high = key.readUIntBE(0, 6)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (compareHlc(recordInfoAt(readBlock(environment, middle), 0).hlc, moment) <= 0) low = middle
    else high = middle - 1
  }
  return low
}
