import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { limits } from '../../src/base/limits.js'
import { compareHlc, type Hlc } from '../../src/strand/hlc.js'
import type { Environment } from './environment.js'
import { agentNoAt, blockCount, placedAt, rawRecordAt } from './record-codec.js'
import { readBlock, strandEnd } from './records.js'
import { agentNoKey, blockKey } from './tables.js'

/*
 * Where the strands of a shard stand, for the server log (docs/adr/0023-server-log.md). Pure functions of a view of the
 * store, which read as little of a record as they can.
 */

/** Where one agent's strand stands. */
export interface MovedHead {
  agentNo: number
  seq: number
  hash: string
}

/** Heads that one look found. */
export interface MovedHeads {
  heads: MovedHead[]
  /** The clock up to which these are all. */
  reached: Hlc
  end: boolean
  /** The clock before the first block with a record that does not match its checksum. */
  damagedAfter?: Hlc
}

/**
 * The heads of the agents that have records after `after`, from some blocks on; of each agent its last record in them. A
 * record that does not match its checksum is passed over, and said of: the one before it stands for it, but whose it was
 * is not known for sure.
 */
export function movedHeads(environment: Environment, after: Hlc): MovedHeads {
  const moved = new Map<number, MovedHead>()
  const damage: { damagedAfter?: Hlc } = {}
  let reached = after
  let blocks = 0
  let bytes = 0
  const start = blockKey(firstBlock(environment, after))
  for (const { value } of environment.blocks.getRange({ start })) {
    if (blocks >= limits.logScanBlocks || bytes >= limits.logScanBytes || moved.size >= limits.logHeadsMax)
      return { heads: [...moved.values()], reached, end: false, ...damage }
    const last = placedAt(value, blockCount(value) - 1).hlc
    if (compareHlc(last, after) <= 0) continue
    if (!takeBlock(moved, value, after)) damage.damagedAfter ??= reached
    reached = last
    blocks++
    bytes += value.length
  }
  return { heads: [...moved.values()], reached, end: true, ...damage }
}

/** The heads of the agents from the number `fromNo` on, as many as one look gives. */
export function allHeads(environment: Environment, fromNo: number): { heads: MovedHead[]; nextNo: number } {
  const heads: MovedHead[] = []
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

/** From the end, so that the first record of an agent is its last. @returns whether each that was read is whole */
function takeBlock(moved: Map<number, MovedHead>, block: Uint8Array, after: Hlc): boolean {
  const first = firstAfter(block, after)
  const taken = new Set<number>()
  // The records of one agent in a commit lie together.
  let last = -1
  let whole = true
  for (let position = blockCount(block) - 1; position >= first; position--) {
    const agentNo = agentNoAt(block, position)
    if (agentNo === last || taken.has(agentNo)) continue
    const record = wholeRecord(block, position)
    if (record === undefined) {
      whole = false
      continue
    }
    last = agentNo
    taken.add(agentNo)
    moved.set(agentNo, { agentNo, seq: record.seq, hash: record.hash })
  }
  return whole
}

/** The position of the first record of a block after `after`; all of most blocks are. */
function firstAfter(block: Uint8Array, after: Hlc): number {
  let position = 0
  while (compareHlc(placedAt(block, position).hlc, after) <= 0) position++
  return position
}

function wholeRecord(block: Uint8Array, position: number): { seq: number; hash: string } | undefined {
  try {
    return rawRecordAt(asBuffer(block), position)
  } catch {
    return undefined
  }
}

/** The last block in the order of commits that begins at or before `moment`; the first one where none does. */
function firstBlock(environment: Environment, moment: Hlc): number {
  let low = 0
  let high = 0
  const range = { reverse: true, limit: 1 }
  for (const key of environment.blocks.getKeys(range)) high = key.readUIntBE(0, 6)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (compareHlc(placedAt(readBlock(environment, middle), 0).hlc, moment) <= 0) low = middle
    else high = middle - 1
  }
  return low
}
