import { ROW_CHECKSUM_BYTES } from '../../../src/store-files/row-checksum.js'
import { limits } from '../../../src/base/limits/limits.js'
import { formatHlc } from '../../../src/strand/hlc.js'
import { recordHash } from '../../../src/strand/hash.js'
import { headerText, zeroHash } from '../../../src/strand/header.js'
import { type AgentRow, agentRowOf } from '../tables/agent.js'
import type { StoredRecord } from '../tables/record-codec.js'
import { agentNoKey, runKey } from '../tables/tables.js'
import type { RowChange } from './row-change.js'
import { tableIds } from '../../../src/store-files/store-tables.js'

/** Reads a row of the store as it is stored, by the number of its table; undefined if there is none. */
export type RowOf = (table: number, key: Buffer) => Buffer | undefined

/** The parts of a record's header that come from the rows of its agent. */
interface Identity {
  strand: string
  /** In order of use. */
  publicKeys: readonly string[]
}

/**
 * Computes the hashes of records again, when they are read from a cluster's log or were moved to another
 * shard. Strand and key of a header come from the rows of the agent, which must be read with the record or
 * before it.
 */
export class RecordCheck {
  readonly #rowOf: RowOf
  readonly #agents = new Map<number, Identity>()
  /** Commitments of erased records whose erasure was not read yet, by the keys of their rows. */
  readonly #erasedLater = new Map<string, string>()
  /** Erasures in the current segment. */
  readonly #erasures = new Map<string, string>()

  constructor(rowOf: RowOf) {
    this.#rowOf = rowOf
  }

  /** Starts a segment with its sealed rows. @throws Error if an erasure contradicts an erased record */
  startSegment(changes: readonly RowChange[]): void {
    this.#erasures.clear()
    if (this.#agents.size >= limits.openAgentsMax) this.#agents.clear()
    for (const { table, key, value } of changes) {
      if (value === undefined) continue
      if (table === tableIds.agents) this.#learn(agentRowOf(key.toString(), withoutChecksum(value)))
      if (table === tableIds.erasures) this.#erased(key.toString('latin1'), hexOf(value))
    }
  }

  /** Checks a record of the segment. @throws Error if the record does not match its hash */
  checkRecord(record: StoredRecord, commitment: string): void {
    const fault = this.faultOf(record, commitment)
    if (fault !== undefined)
      throw new Error(`record ${record.seq} of agent number ${record.agentNo} ${fault}`)
  }

  /**
   * Checks a record.
   * @returns a predicate that says what is wrong, such as "has no agent"; undefined if it is valid
   */
  faultOf(record: StoredRecord, commitment: string): string | undefined {
    const { agentNo, seq, prev, hlc, type } = record
    if (record.erased === true) this.#matchErasure(record, commitment)
    const agent = this.#agents.get(agentNo) ?? this.#find(agentNo)
    if (agent === undefined) throw new Error(`agent number ${agentNo} is not known`)
    const key = agent.publicKeys[record.keyIndex]
    if (key === undefined) return 'names a key that its agent never had'
    const strand = seq === 0 ? zeroHash : agent.strand
    const header = { strand, key, seq, prev, hlc: formatHlc(hlc), type, body: commitment }
    if (recordHash(headerText(header)) !== record.hash) return 'does not have the hash of its header'
    return seq === 0 && record.hash !== agent.strand ? 'is not the genesis record of its agent' : undefined
  }

  /** Whether a body is missing whose erasure was not read yet. */
  get awaitsErasure(): boolean {
    return this.#erasedLater.size > 0
  }

  /** Call it at the end of the log. @throws Error if a body is missing that was never erased */
  finish(): void {
    if (this.awaitsErasure)
      throw new Error('The cluster’s log lacks the body of a record that was never erased')
  }

  #learn({ no, strand, publicKey, retiredKeys = [] }: AgentRow): void {
    this.#agents.set(no, { strand, publicKeys: [...retiredKeys.map((key) => key.publicKey), publicKey] })
  }

  #find(agentNo: number): Identity | undefined {
    const found = this.#rowOf(tableIds.names, agentNoKey(agentNo))
    const name = found && withoutChecksum(found)
    const row = name && this.#rowOf(tableIds.agents, name)
    if (row !== undefined) this.#learn(agentRowOf(String(name), withoutChecksum(row)))
    return this.#agents.get(agentNo)
  }

  #erased(key: string, commitment: string): void {
    const found = this.#erasedLater.get(key)
    if (found !== undefined && found !== commitment)
      throw new Error('an erased record does not match its commitment')
    this.#erasedLater.delete(key)
    this.#erasures.set(key, commitment)
  }

  /**
   * An erasure removes the body from the record's segment, so a missing body may precede its erasure in the
   * log.
   */
  #matchErasure({ agentNo, seq }: StoredRecord, commitment: string): void {
    const key = runKey(agentNo, seq)
    const row = this.#rowOf(tableIds.erasures, key)
    const stored = this.#erasures.get(key.toString('latin1')) ?? (row === undefined ? undefined : hexOf(row))
    if (stored === undefined) this.#erasedLater.set(key.toString('latin1'), commitment)
    else if (stored !== commitment) throw new Error('an erased record does not match its commitment')
  }
}

function withoutChecksum(row: Buffer): Buffer {
  return row.subarray(0, -ROW_CHECKSUM_BYTES)
}

function hexOf(row: Buffer): string {
  return withoutChecksum(row).toString('hex')
}
