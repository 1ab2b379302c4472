import { assert } from '../../../src/base/assert.js'
import { bodyCommitment } from '../../../src/strand/hash.js'
import type { Environment } from '../environment.js'
import { byAgentInKey } from '../row-move.js'
import type { TableSpec } from '../table-spec.js'
import { eraseAt, recordAt } from './record-codec.js'
import { blockTable, recordLocation, readBlock } from './records.js'
import { blockKey, runKey } from './tables.js'

/** A record whose body and salt are to be destroyed. */
export interface PendingErasure {
  agentNo: number
  seq: number
}

/** The first and the last seq of the records that a request wrote to its agent. */
export type SeqRange = readonly [first: number, last: number]

/** Erasures of records. */
export class Erasures {
  readonly #names = new Set<string>()
  readonly all: PendingErasure[] = []

  add(erasure: PendingErasure): void {
    this.all.push(erasure)
    this.#names.add(`${erasure.agentNo}/${erasure.seq}`)
  }

  has({ agentNo, seq }: PendingErasure): boolean {
    return this.#names.has(`${agentNo}/${seq}`)
  }
}

export const erasures: TableSpec<Environment, Erasures> = {
  open: (environment) => environment,
  moves: { erasures: byAgentInKey },
  changes: () => new Erasures(),
  rows: ({ all }) => all.length,
  put: (environment, { all }) => eraseRecords(environment, all),
}

/**
 * Destroys bodies and salts, and stores the commitments that the headers need. A block keeps its length, so
 * that LMDB overwrites all its bytes in the copy of the page.
 */
function eraseRecords(environment: Environment, all: readonly PendingErasure[]): void {
  for (const { agentNo, seq } of all) {
    const { blockNo, position } = recordLocation(environment, agentNo, seq)
    const block = Buffer.from(readBlock(environment, blockNo))
    const record = recordAt(block, position)
    assert(record.agentNo === agentNo && record.seq === seq, 'a record is at its location')
    assert(record.erased === undefined, 'a record is erased once')
    const commitment = Buffer.from(bodyCommitment(record.salt, record.body), 'hex')
    eraseAt(block, position)
    blockTable(environment, blockNo).putSync(blockKey(blockNo), block)
    environment.erasures.put(runKey(agentNo, seq), commitment)
  }
}

/**
 * Stores the body commitment, 64 hex digits, of a record that was imported erased, within the caller's
 * transaction.
 */
export function putCommitment(
  environment: Environment,
  { agentNo, seq }: PendingErasure,
  commitment: string,
): void {
  environment.erasures.put(runKey(agentNo, seq), Buffer.from(commitment, 'hex'))
}

/** Whether any record of an agent in a range of seqs is erased. */
export function hasErasure(environment: Environment, agentNo: number, [first, last]: SeqRange): boolean {
  const range = { start: runKey(agentNo, first), end: runKey(agentNo, last + 1), limit: 1 }
  for (const _key of environment.erasures.getKeys(range)) return true
  return false
}

/** The body commitment of an erased record, 64 hex digits. */
export function erasedCommitment(environment: Environment, { agentNo, seq }: PendingErasure): string {
  const commitment = environment.erasures.get(runKey(agentNo, seq))
  assert(commitment?.length === 32, 'the commitment of an erased record is stored')
  return commitment.toString('hex')
}
