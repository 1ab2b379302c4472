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
 * What the PostgreSQL sink reads: the shard's blocks in commit order, and in them the records that came by an ingest
 * route. Pure functions of a read-only view (docs/adr/0013-postgres-sink.md).
 */

/** The number of the shard's last block; -1 when there is none. */
export function lastBlockNo({ blocks }: Environment): number {
  for (const key of blocks.getKeys({ reverse: true, limit: 1 })) return key.readUIntBE(0, 6)
  return -1
}

/** The hash of the last record of a block, hex: it identifies a place in the log. */
export function lastHashOf(environment: Environment, blockNo: number): string {
  const block = readBlock(environment, blockNo)
  return hashAt(block, blockCount(block) - 1)
}

/** When the first record of a block was decided, Unix milliseconds of its HLC. */
export function blockMs(environment: Environment, blockNo: number): number {
  return hlcMsAt(readBlock(environment, blockNo), 0)
}

/** How many records of a block came by an ingest route. */
export function ingestedCount(environment: Environment, blockNo: number): number {
  const block = readBlock(environment, blockNo)
  let count = 0
  for (let position = blockCount(block) - 1; position >= 0; position--) {
    if (isIngestedAt(block, position)) count++
  }
  return count
}

/** What a block holds for the sink. */
export interface SinkBlock {
  /** The records that came by an ingest route, in commit order. */
  ingested: StoredRecord[]
  /** Hashes, hex, of records of whatever kind that were erased. */
  erased: string[]
}

/** Reads a block for the sink. @throws Error when a record in it that the sink needs does not match its checksum */
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

/** The name of an agent by its number in the shard. */
export function agentNameOf({ names }: Environment, agentNo: number): string {
  const name = names.get(agentNoKey(agentNo))
  assert(name !== undefined, 'an agent number leads to a name')
  return name.toString()
}
