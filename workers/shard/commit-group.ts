import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { RandomBytes } from '../../src/base/random.js'
import type { Signing } from '../../src/protocol/command-options.js'
import { bodyCommitment, hashOf, headerBytes } from '../../src/strand/hash.js'
import { headerText, zeroHash } from '../../src/strand/header.js'
import { formatHlc, type Hlc, type HlcClock } from '../../src/strand/hlc.js'
import { signBytes, signText } from '../../src/strand/keys.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import { type AgentChange, type ImportedRecord, type PendingRecord, WriteSet } from '../store/write-set.js'

const clockSkew = refuse(
  'clock_skew',
  'The clock of the server is behind its latest records, try again later',
)

/** A record that is not yet chained. */
export interface Draft {
  type: string
  body: Uint8Array
  signing: Signing
  /** The record arrived over an ingest route. */
  ingested?: boolean
}

export interface ChainedRecord extends Pick<
  StoredRecord,
  'seq' | 'hlc' | 'hash' | 'prev' | 'salt' | 'signature'
> {
  header: string
}

/**
 * Chains a draft to the head of its strand and signs it, unless the signature of a later record in its group
 * may cover it.
 */
export function chainRecord(
  agent: Pick<Agent, 'publicKey' | 'strand' | 'keyPair'> & { head: { seq: number; hash: string } },
  { draft, hlc, salt }: { draft: Draft; hlc: Hlc; salt: Uint8Array },
): ChainedRecord {
  const genesis = agent.head.hash === ''
  const seq = genesis ? 0 : agent.head.seq + 1
  const prev = genesis ? zeroHash : agent.head.hash
  const header = headerText({
    strand: genesis ? zeroHash : agent.strand,
    key: agent.publicKey,
    seq,
    prev,
    hlc: formatHlc(hlc),
    type: draft.type,
    body: bodyCommitment(salt, draft.body),
  })
  const { leaf, text } = headerBytes(header)
  const chained: ChainedRecord = { seq, hlc, hash: hashOf(leaf), prev, salt, header }
  if (!isGroupSigned(draft)) chained.signature = signBytes(agent.keyPair.secretKey, text)
  return chained
}

function isGroupSigned({ signing, type }: Draft): boolean {
  return signing === 'group' && !isReservedType(type)
}

/**
 * The writes of one transaction. Records are chained and signed as they are decided; records with group
 * signing are signed when the group is sealed. Nothing is visible outside the group before the commit.
 */
export class CommitGroup extends WriteSet {
  readonly #hlc: HlcClock
  readonly #random: RandomBytes
  /**
   * The header and the signing key of each agent's last unsigned record, by agent number. Other headers are
   * dropped, because the garbage collector would copy them until the commit.
   */
  readonly #lastUnsigned = new Map<number, { header: string; secretKey: Buffer }>()
  /** The new and imported records of each agent, by agent number; their seqs are consecutive. */
  readonly #byAgent = new Map<number, StoredRecord[]>()
  /** Reserved clock readings; the first `#used` of them are used. */
  readonly #reserved: Hlc[] = []
  #used = 0

  constructor(hlc: HlcClock, random: RandomBytes) {
    super()
    this.#hlc = hlc
    this.#random = random
  }

  /** True when there is nothing to commit. */
  get empty(): boolean {
    return this.size === 0 && this.agentChanges.size === 0 && this.changes.isEmpty
  }

  /** The number of new and imported records. */
  get size(): number {
    return this.records.length + this.imported.length
  }

  /** Changes the row of an agent; the caller also changes the agent in memory. */
  changeAgent(name: string, change: AgentChange): void {
    this.agentChanges.set(name, { ...this.agentChanges.get(name), ...change })
  }

  /**
   * Reserves the clock readings of records that are appended together or not at all.
   * @returns 503 clock_skew if the readings would run too far ahead of the clock
   */
  reserve(count: number): Refusal | undefined {
    while (this.#reserved.length - this.#used < count) {
      const hlc = this.#hlc.next()
      if (hlc === undefined) return clockSkew
      this.#reserved.push(hlc)
    }
    return undefined
  }

  /**
   * Appends a record to the strand of its agent.
   * @returns the record, or 503 clock_skew if the strand would run too far ahead of the clock
   */
  append(agent: Agent, draft: Draft): PendingRecord | Refusal {
    const hlc = this.#takeReading()
    if (hlc === undefined) return clockSkew
    return this.#add(agent, draft, chainRecord(agent, { draft, hlc, salt: this.#random(16) }))
  }

  /** Appends a record that was chained earlier; later clock readings come after the record's. */
  appendChained(agent: Agent, draft: Draft, chained: ChainedRecord): PendingRecord {
    assert(agent.head.hash === '' || chained.prev === agent.head.hash, 'a record is chained to the head')
    this.#advanceTo(chained.hlc)
    return this.#add(agent, draft, chained)
  }

  /** The latest clock reading that was issued. */
  get lastReading(): Hlc {
    return this.#hlc.last
  }

  /**
   * Lists each member, because spreading an object takes several times as long and this runs for every
   * record.
   */
  #add(agent: Agent, draft: Draft, chained: ChainedRecord): PendingRecord {
    const { seq, hlc, hash, prev, salt, signature, header } = chained
    const isUnsigned = signature === undefined
    agent.strandBytes += draft.body.length
    agent.head = { seq, hash, hlc, signature: '' }
    this.touched.set(agent.name, agent)
    const record: PendingRecord = {
      agentNo: agent.no,
      seq,
      hlc,
      hash,
      prev,
      salt,
      type: draft.type,
      keyIndex: agent.keyIndex,
      body: draft.body,
      agent,
      awaitsSeal: isUnsigned,
      strandBytes: agent.strandBytes,
      ingested: draft.ingested === true,
    }
    if (signature !== undefined) record.signature = signature
    if (isUnsigned) this.#lastUnsigned.set(agent.no, { header, secretKey: agent.keyPair.secretKey })
    this.records.push(record)
    this.#index(record)
    return record
  }

  /**
   * Does the same work as appending a record, so that the response time is the same, but appends nothing.
   * @returns as many bytes as the record would take, to be written instead of it
   */
  decoy(agent: Agent, { type, body }: Pick<Draft, 'type' | 'body'>): Buffer {
    const { strand, publicKey: key, keyPair, head } = agent
    const salt = this.#random(16)
    const commitment = bodyCommitment(salt, body)
    const about = { strand, key, seq: head.seq, prev: head.hash, hlc: formatHlc(head.hlc), type }
    const { leaf, text } = headerBytes(headerText({ ...about, body: commitment }))
    return Buffer.concat([Buffer.from(hashOf(leaf), 'hex'), salt, signBytes(keyPair.secretKey, text), body])
  }

  /** Appends an imported record unchanged; later clock readings come after the record's. */
  appendImported(record: ImportedRecord): void {
    const { agent, seq, hash, hlc, signature } = record
    agent.strandBytes = record.strandBytes
    agent.head = {
      seq,
      hash,
      hlc,
      signature: signature === undefined ? '' : asBuffer(signature).toString('hex'),
    }
    this.touched.set(agent.name, agent)
    this.imported.push(record)
    this.#index(record)
    this.#advanceTo(hlc)
  }

  #index(record: StoredRecord): void {
    const others = this.#byAgent.get(record.agentNo)
    if (others === undefined) this.#byAgent.set(record.agentNo, [record])
    else others.push(record)
  }

  /** The record that this group writes at a seq of an agent. */
  recordAt(agentNo: number, seq: number): StoredRecord | undefined {
    const ownRecords = this.#byAgent.get(agentNo)
    return ownRecords?.[seq - (ownRecords[0]?.seq ?? 0)]
  }

  /** Makes later readings come after this one and drops the unused reserved readings. */
  #advanceTo(hlc: Hlc): void {
    this.#reserved.length = this.#used
    this.#hlc.advanceTo(hlc)
  }

  #takeReading(): Hlc | undefined {
    return this.#used < this.#reserved.length ? this.#reserved[this.#used++] : this.#hlc.next()
  }

  /**
   * Signs the records that have no signature yet (docs/FORMAT.md, Signed and sealed). Of an agent's records
   * with group signing only the last one in this group is signed; its signature covers the earlier ones
   * through `prev`.
   */
  seal(): void {
    const nextSigned = new Map<number, number>()
    for (let index = this.records.length - 1; index >= 0; index--) {
      const record = this.records[index]
      assert(record !== undefined, 'the index is within the group')
      if (record.awaitsSeal) {
        const sealedBy = nextSigned.get(record.agentNo)
        if (sealedBy !== undefined) {
          record.sealedBy = sealedBy
          continue
        }
        const last = this.#lastUnsigned.get(record.agentNo)
        assert(last !== undefined, 'the last unsigned record of the agent is known')
        record.signature = signText(last.secretKey, last.header)
      }
      assert(record.signature !== undefined, 'a record without group signing is signed')
      nextSigned.set(record.agentNo, record.seq)
      if (record.agent.head.seq === record.seq)
        record.agent.head.signature = asBuffer(record.signature).toString('hex')
    }
  }
}
