import { assert } from '../../src/base/assert.js'
import { asBuffer } from '../../src/base/bytes.js'
import { refuse, type Refusal } from '../../src/base/errors.js'
import type { RandomBytes } from '../../src/base/random.js'
import type { ApiKeyChanges, ApiKeyRow } from '../../src/protocol/api-key-messages.js'
import type { Signing } from '../../src/protocol/command-options.js'
import type { OrganismRow } from '../../src/protocol/organism-messages.js'
import { bodyCommitment, hashOf, headerBytes } from '../../src/strand/hash.js'
import { headerText, zeroHash } from '../../src/strand/header.js'
import { formatHlc, type Hlc, type HlcClock } from '../../src/strand/hlc.js'
import { signBytes, signText } from '../../src/strand/keys.js'
import type { LoggedHead } from '../../src/strand/server-log.js'
import { isReservedType } from '../../src/strand/record-type.js'
import type { OpenShare, PendingProposal } from '../store/tables/proposals.js'
import type { Agent, AgentRow } from '../store/tables/agent.js'
import type { PendingAuthRow, PendingRevocation } from '../store/tables/auth-table.js'
import { edgeNameKey, type EdgeChange, type EdgeName } from '../store/tables/edges.js'
import type { PendingErasure } from '../store/tables/erasures.js'
import type { PastProposal } from '../store/tables/past-proposals.js'
import type { StoredRecord } from '../store/tables/record-codec.js'
import type {
  AgentChange,
  ImportedRecord,
  PendingAnswer,
  PendingMutation,
  PendingRecord,
  WriteSet,
} from '../store/write-set.js'
import type { ZoneChange } from '../store/tables/zone-changes.js'

const clockSkew = refuse('clock_skew', 'The clock of the server is behind its last records, try again later')

/** A record before it has its place in the chain. */
export interface Draft {
  type: string
  body: Uint8Array
  signing: Signing
  /** It came by an ingest route. */
  ingested?: boolean
}

/** A record with its place in the chain. */
export interface ChainedRecord {
  seq: number
  hlc: Hlc
  hash: string
  prev: string
  salt: Uint8Array
  /** Absent where it waits for the seal of its group. */
  signature?: Uint8Array
  header: string
}

/** Chains a draft to the head of its strand and signs it, unless a later record of its group may seal it. */
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
  if (!mayWait(draft)) chained.signature = signBytes(agent.keyPair.secretKey, text)
  return chained
}

function mayWait({ signing, type }: Draft): boolean {
  return signing === 'group' && !isReservedType(type)
}

const noSignature = Buffer.alloc(0)

/**
 * The writes of one transaction. Records are chained and signed as they are decided, except those that one signature
 * may cover: they are sealed with the group. Until the commit nobody outside sees any of it.
 */
export class CommitGroup implements WriteSet {
  readonly records: PendingRecord[] = []
  readonly imported: ImportedRecord[] = []
  readonly newAgents = new Map<string, AgentRow>()
  /** Changes of existing agents, by name. */
  readonly agentChanges = new Map<string, AgentChange>()
  /** Proposals as this group leaves them, by agent number and seq. */
  readonly proposals = new Map<string, PendingProposal>()
  /** Proposals whose rows are replaced by the places of their records. */
  readonly pastProposals: PastProposal[] = []
  /**
   * Whom the open proposals of agents counted for before this group, by agent number and seq, as far as it was read.
   */
  readonly openShares = new Map<number, Map<number, OpenShare>>()
  readonly erasures: PendingErasure[] = []
  readonly zoneChanges: ZoneChange[] = []
  /** Changes of each edge, in order. */
  readonly edges = new Map<string, EdgeChange[]>()
  /** Agents that this group has changed: their state is ahead of the store's. */
  readonly touched = new Map<string, Agent>()
  readonly mutations: PendingMutation[] = []
  /** Hashes of the records that are deleted, restored or erased. */
  readonly changedRecords: string[] = []
  readonly answers = new Map<string, PendingAnswer>()
  readonly publicKeys = new Map<string, string>()
  readonly apiKeys = new Map<string, ApiKeyRow | undefined>()
  /** Changes of keys for the front thread; that a key was used is not among them. */
  readonly apiKeyChanges: ApiKeyChanges = { made: [], gone: [] }
  /** The content of audit records that are written only when it changes, by their type. */
  readonly lastReported = new Map<string, string>()
  readonly organisms = new Map<string, OrganismRow>()
  readonly authRows = new Map<string, PendingAuthRow>()
  readonly revocations: PendingRevocation[] = []
  /** Namespaces whose signing keys were rotated, for the fronts. */
  readonly rotated: string[] = []
  /** The heads that records of the server log name, by the seq of the record. */
  readonly loggedHeads = new Map<number, readonly LoggedHead[]>()
  /** Mails, sealed, by their key; undefined for those that leave the outbox. */
  readonly mails = new Map<string, Buffer | undefined>()
  readonly #hlc: HlcClock
  readonly #random: RandomBytes
  /**
   * By agent number, the last record that waits for the seal: its header, and the key in force for it. Other headers are
   * not kept, since the garbage collector would carry them along until the commit.
   */
  readonly #lastWaiting = new Map<number, { header: string; secretKey: Buffer }>()
  /** By agent number, its records of either kind, which follow each other. */
  readonly #byAgent = new Map<number, StoredRecord[]>()
  /** Records that this group erases, as agent number and seq. */
  readonly #erased = new Set<string>()
  /** Clock readings that were reserved; the first `#used` of them are used. */
  readonly #reserved: Hlc[] = []
  #used = 0

  constructor(hlc: HlcClock, random: RandomBytes) {
    this.#hlc = hlc
    this.#random = random
  }

  /** True when there is nothing to commit. */
  get empty(): boolean {
    const {
      records,
      imported,
      pastProposals,
      publicKeys,
      organisms,
      apiKeys,
      answers,
      authRows,
      mails,
      loggedHeads,
    } = this
    const maps = [this.agentChanges, publicKeys, organisms, apiKeys, answers, authRows, mails, loggedHeads]
    return (
      records.length + imported.length + pastProposals.length === 0 && maps.every((map) => map.size === 0)
    )
  }

  /** How many records it has, of either kind. */
  get size(): number {
    return this.records.length + this.imported.length
  }

  /** Changes the row of an agent; the caller changes the agent in memory. */
  changeAgent(name: string, change: AgentChange): void {
    this.agentChanges.set(name, { ...this.agentChanges.get(name), ...change })
  }

  /** Adds a change of an edge. */
  changeEdge(change: EdgeChange): void {
    const key = edgeNameKey(change)
    const before = this.edges.get(key)
    if (before === undefined) this.edges.set(key, [change])
    else before.push(change)
  }

  /** The last change of an edge in this group. */
  edgeChange(name: EdgeName): EdgeChange | undefined {
    return this.edges.get(edgeNameKey(name))?.at(-1)
  }

  /**
   * Reserves the clock readings of records that are appended together or not at all, before the first of them.
   * @returns 503 clock_skew when so many would run too far ahead of the clock
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
   * Chains one record onto its agent's strand.
   * @returns the record, or 503 clock_skew when the strand would run too far ahead of the clock
   */
  append(agent: Agent, draft: Draft): PendingRecord | Refusal {
    const hlc = this.#takeReading()
    if (hlc === undefined) return clockSkew
    return this.#add(agent, draft, chainRecord(agent, { draft, hlc, salt: this.#random(16) }))
  }

  /** Appends a record that was chained before, to the head of its strand and behind every reading of the clock. */
  appendChained(agent: Agent, draft: Draft, chained: ChainedRecord): PendingRecord {
    assert(agent.head.hash === '' || chained.prev === agent.head.hash, 'a record is chained to the head')
    this.#passTo(chained.hlc)
    return this.#add(agent, draft, chained)
  }

  /** The latest reading of the clock that was given out. */
  get lastReading(): Hlc {
    return this.#hlc.last
  }

  /** Each member is named: spreading an object takes several times as long, and this runs once a record. */
  #add(agent: Agent, draft: Draft, chained: ChainedRecord): PendingRecord {
    const { seq, hlc, hash, prev, salt, signature, header } = chained
    const waits = signature === undefined
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
      waits,
      strandBytes: agent.strandBytes,
      ingested: draft.ingested === true,
    }
    if (signature !== undefined) record.signature = signature
    if (waits) this.#lastWaiting.set(agent.no, { header, secretKey: agent.keyPair.secretKey })
    this.records.push(record)
    this.#index(record)
    return record
  }

  /**
   * Computes all that appending the record would need, and appends nothing.
   * @returns as many bytes as the record would take, to be written in its place
   */
  decoy(agent: Agent, { type, body }: Pick<Draft, 'type' | 'body'>): Buffer {
    const { strand, publicKey: key, keyPair, head } = agent
    const salt = this.#random(16)
    const commitment = bodyCommitment(salt, body)
    const about = { strand, key, seq: head.seq, prev: head.hash, hlc: formatHlc(head.hlc), type }
    const { leaf, text } = headerBytes(headerText({ ...about, body: commitment }))
    return Buffer.concat([Buffer.from(hashOf(leaf), 'hex'), salt, signBytes(keyPair.secretKey, text), body])
  }

  /** Appends an imported record as it is; clock readings from now on are later than its own. */
  takeIn(record: ImportedRecord): void {
    const { agent, seq, hash, hlc, signature = noSignature } = record
    agent.strandBytes = record.strandBytes
    agent.head = { seq, hash, hlc, signature: Buffer.from(signature).toString('hex') }
    this.touched.set(agent.name, agent)
    this.imported.push(record)
    this.#index(record)
    this.#passTo(hlc)
  }

  #index(record: StoredRecord): void {
    const others = this.#byAgent.get(record.agentNo)
    if (others === undefined) this.#byAgent.set(record.agentNo, [record])
    else others.push(record)
  }

  /** The record of an agent that this group writes at a seq. */
  recordAt(agentNo: number, seq: number): StoredRecord | undefined {
    const own = this.#byAgent.get(agentNo)
    return own?.[seq - (own[0]?.seq ?? 0)]
  }

  /** Erases a record. */
  erase(erasure: PendingErasure): void {
    this.erasures.push(erasure)
    this.#erased.add(`${erasure.agentNo}/${erasure.seq}`)
  }

  /** Whether this group erases a record. */
  erases({ agentNo, seq }: PendingErasure): boolean {
    return this.#erased.has(`${agentNo}/${seq}`)
  }

  /** Makes later readings come after this one; those reserved before do not change. */
  #passTo(hlc: Hlc): void {
    this.#reserved.length = this.#used
    this.#hlc.pass(hlc)
  }

  #takeReading(): Hlc | undefined {
    return this.#used < this.#reserved.length ? this.#reserved[this.#used++] : this.#hlc.next()
  }

  /**
   * Signs what must be signed (docs/FORMAT.md, Signed and sealed): every record; but of those that asked for group
   * signing only the agent's last in this group, which then covers the others through `prev`.
   */
  seal(): void {
    const nextSigned = new Map<number, number>()
    for (let index = this.records.length - 1; index >= 0; index--) {
      const record = this.records[index]
      assert(record !== undefined, 'the index is within the group')
      if (record.waits) {
        const sealedBy = nextSigned.get(record.agentNo)
        if (sealedBy !== undefined) {
          record.sealedBy = sealedBy
          continue
        }
        const last = this.#lastWaiting.get(record.agentNo)
        assert(last !== undefined, 'the last record that waits is known')
        record.signature = signText(last.secretKey, last.header)
      }
      assert(record.signature !== undefined, 'what does not wait for the seal is signed')
      nextSigned.set(record.agentNo, record.seq)
      if (record.agent.head.seq === record.seq)
        record.agent.head.signature = asBuffer(record.signature).toString('hex')
    }
  }
}
