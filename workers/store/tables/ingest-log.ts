import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'
import {
  blockCount,
  hashAt,
  hasTypeAt,
  hlcMsAt,
  isIngestedAt,
  recordAt,
  type StoredRecord,
} from './record-codec.js'
import { eraseType } from '../../../src/strand/record-type.js'
import type { Environment } from '../environment.js'
import { readBlock } from './records.js'
import { agentNoKey } from './tables.js'

/*
 * Reads for the PostgreSQL sink: the shard's blocks in commit order, and in them the records from ingest
 * routes. Pure functions of a read-only view (docs/adr/0013-postgres-sink.md).
 */

/** The number of the shard's last block; -1 if there is none. */
export function lastBlockNo({ blocks }: Environment): number {
  for (const key of blocks.getKeys({ reverse: true, limit: 1 })) return key.readUIntBE(0, 6)
  return -1
}

/** The hash of the last record of a block, hex. It identifies a position in the log. */
export function lastHashOf(environment: Environment, blockNo: number): string {
  const block = readBlock(environment, blockNo)
  return hashAt(block, blockCount(block) - 1)
}

/** The time of the first record of a block, Unix milliseconds of its HLC. */
export function blockMs(environment: Environment, blockNo: number): number {
  return hlcMsAt(readBlock(environment, blockNo), 0)
}

/** The number of records in a block from ingest routes. */
export function ingestedCount(environment: Environment, blockNo: number): number {
  const block = readBlock(environment, blockNo)
  let count = 0
  for (let position = blockCount(block) - 1; position >= 0; position--) {
    if (isIngestedAt(block, position)) count++
  }
  return count
}

export interface SinkBlock {
  /** Records from ingest routes, in commit order. */
  ingested: StoredRecord[]
  /** Hashes, hex, of all records that a `sys/erase` record in the block erases. */
  erased: string[]
}

/** Reads a block for the sink. @throws Error if a record that the sink needs does not match its checksum */
export function readSinkBlock(environment: Environment, blockNo: number): SinkBlock {
  const block = readBlock(environment, blockNo)
  const found: SinkBlock = { ingested: [], erased: [] }
  for (let position = 0; position < blockCount(block); position++) {
    if (isIngestedAt(block, position)) found.ingested.push(recordAt(block, position))
    else if (hasTypeAt(block, position, eraseType)) found.erased.push(targetOf(recordAt(block, position)))
  }
  return found
}

/** The hash of the record that a `sys/erase` record erases (docs/FORMAT.md, Mutations). */
function targetOf({ body }: StoredRecord): string {
  const { target } = JSON.parse(asBuffer(body).toString('utf8')) as { target: string }
  return target
}

export function agentNameOf({ names }: Environment, agentNo: number): string {
  const name = names.get(agentNoKey(agentNo))
  assert(name !== undefined, 'an agent number leads to a name')
  return name.toString()
}
