import { assert } from '../../../src/base/assert.js'
import { bodyCommitment } from '../../../src/strand/hash.js'
import type { Environment } from '../environment.js'
import { eraseAt, recordAt } from './record-codec.js'
import { blockTable, placeOf, readBlock } from './records.js'
import { blockKey, runKey } from './tables.js'

/** A record whose body and salt are to be destroyed. */
export interface PendingErasure {
  agentNo: number
  seq: number
}

/**
 * Destroys bodies and salts within the caller's transaction, and keeps the commitments that their headers need. A block
 * keeps its length, so that LMDB overwrites each of its bytes in the copy that it makes of the page.
 */
export function eraseRecords(environment: Environment, erasures: readonly PendingErasure[]): void {
  for (const { agentNo, seq } of erasures) {
    const { blockNo, position } = placeOf(environment, agentNo, seq)
    const block = Buffer.from(readBlock(environment, blockNo))
    const record = recordAt(block, position)
    assert(record.agentNo === agentNo && record.seq === seq, 'a place leads to its record')
    assert(record.erased === undefined, 'a record is erased once')
    const commitment = Buffer.from(bodyCommitment(record.salt, record.body), 'hex')
    eraseAt(block, position)
    blockTable(environment, blockNo).putSync(blockKey(blockNo), block)
    environment.erasures.put(runKey(agentNo, seq), commitment)
  }
}

/** Keeps, within the caller's transaction, the body commitment, 64 hex digits, of a record that was imported erased. */
export function keepCommitment(
  environment: Environment,
  { agentNo, seq }: PendingErasure,
  commitment: string,
): void {
  environment.erasures.put(runKey(agentNo, seq), Buffer.from(commitment, 'hex'))
}

/** The body commitment of an erased record, 64 hex digits. */
export function erasedCommitment(environment: Environment, { agentNo, seq }: PendingErasure): string {
  const commitment = environment.erasures.get(runKey(agentNo, seq))
  assert(commitment?.length === 32, 'the commitment of an erased record is kept')
  return commitment.toString('hex')
}
