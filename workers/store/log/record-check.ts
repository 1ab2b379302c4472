import { ROW_CHECKSUM_BYTES } from '../../../src/store-files/row-checksum.js'
import { limits } from '../../../src/base/limits/limits.js'
import { formatHlc } from '../../../src/strand/hlc.js'
import { recordHash } from '../../../src/strand/hash.js'
import { headerText, zeroHash } from '../../../src/strand/header.js'
import { type AgentRow, agentRowOf } from '../tables/agent.js'
import type { StoredRecord } from '../tables/record-codec.js'
import { agentNoKey, runKey } from '../tables/tables.js'
import type { RowChange } from './row-change.js'
import { tableIds } from './table-ids.js'

/** A row of a store that is brought up to its log, as it is stored; undefined where there is none. */
export type RowOf = (table: number, key: Buffer) => Buffer | undefined

/** What the headers of an agent's records say of it. */
interface Identity {
  strand: string
  /** In their order. */
  publicKeys: readonly string[]
}

/** A body was erased by a segment behind the last one that was read. */
export class ErasedLater extends Error {}

/**
 * Computes the hash of each record again that is read from a cluster's log, or was moved to another shard, from its header and body.
 * The header names the strand and the key, which rows of its agent say: they come with the record or before it.
 */
export class RecordCheck {
  readonly #rowOf: RowOf
  readonly #agents = new Map<number, Identity>()
  /** Commitments of erased records whose erasure has not come yet, by the keys of their rows. */
  readonly #erasedLater = new Map<string, string>()
  /** Erasures that come with the segment that is read. */
  readonly #erasures = new Map<string, string>()

  constructor(rowOf: RowOf) {
    this.#rowOf = rowOf
  }

  /** Takes the sealed rows of the next segment. @throws Error where an erasure contradicts an erased record */
  segment(changes: readonly RowChange[]): void {
    this.#erasures.clear()
    if (this.#agents.size >= limits.openAgentsMax) this.#agents.clear()
    for (const { table, key, value } of changes) {
      if (value === undefined) continue
      if (table === tableIds.agents) this.#learn(agentRowOf(withoutChecksum(value)))
      if (table === tableIds.erasures) this.#erased(key.toString('latin1'), hexOf(value))
    }
  }

  /** Takes a record of it. @throws Error where it is not what its hash says */
  record(record: StoredRecord, commitment: string): void {
    const fault = this.faultOf(record, commitment)
    if (fault !== undefined)
      throw new Error(`record ${record.seq} of agent number ${record.agentNo} ${fault}`)
  }

  /** The same. @returns what is wrong with it: the end of a sentence that begins with the record */
  faultOf(record: StoredRecord, commitment: string): string | undefined {
    const { agentNo, seq, prev, hlc, type } = record
    if (record.erased === true) this.#explain(record, commitment)
    const agent = this.#agents.get(agentNo) ?? this.#find(agentNo)
    if (agent === undefined) throw new Error(`agent number ${agentNo} is not known`)
    const key = agent.publicKeys[record.keyIndex]
    if (key === undefined) return 'names a key that its agent never had'
    const strand = seq === 0 ? zeroHash : agent.strand
    const header = { strand, key, seq, prev, hlc: formatHlc(hlc), type, body: commitment }
    if (recordHash(headerText(header)) !== record.hash) return 'does not have the hash of its header'
    return seq === 0 && record.hash !== agent.strand ? 'is not the one that its agent began with' : undefined
  }

  /** Whether a body is missing whose erasure has not come yet. */
  get isWaiting(): boolean {
    return this.#erasedLater.size > 0
  }

  /** All that is there was read. @throws ErasedLater where a body is missing that was never erased */
  end(): void {
    if (this.isWaiting)
      throw new ErasedLater(
        'The cluster’s log lacks the body of a record, and says nowhere that it was erased',
      )
  }

  #learn({ no, strand, publicKey, retiredKeys = [] }: AgentRow): void {
    this.#agents.set(no, { strand, publicKeys: [...retiredKeys.map((key) => key.publicKey), publicKey] })
  }

  #find(agentNo: number): Identity | undefined {
    const name = this.#rowOf(tableIds.names, agentNoKey(agentNo))
    const row = name === undefined ? undefined : this.#rowOf(tableIds.agents, withoutChecksum(name))
    if (row !== undefined) this.#learn(agentRowOf(withoutChecksum(row)))
    return this.#agents.get(agentNo)
  }

  #erased(key: string, commitment: string): void {
    const found = this.#erasedLater.get(key)
    if (found !== undefined && found !== commitment)
      throw new Error('an erased record has another commitment')
    this.#erasedLater.delete(key)
    this.#erasures.set(key, commitment)
  }

  /** The segment of an erasure takes the body out of the one with which it came, which may be read after that. */
  #explain({ agentNo, seq }: StoredRecord, commitment: string): void {
    const key = runKey(agentNo, seq)
    const row = this.#rowOf(tableIds.erasures, key)
    const kept = this.#erasures.get(key.toString('latin1')) ?? (row === undefined ? undefined : hexOf(row))
    if (kept === undefined) this.#erasedLater.set(key.toString('latin1'), commitment)
    else if (kept !== commitment) throw new Error('an erased record has another commitment')
  }
}

function withoutChecksum(row: Buffer): Buffer {
  return row.subarray(0, -ROW_CHECKSUM_BYTES)
}

function hexOf(row: Buffer): string {
  return withoutChecksum(row).toString('hex')
}
