import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { auditAgent, isServerAgent, logAgent } from '../../../src/strand/organism-id.js'
import { agentSeed, keyPairFromSeed, type KeyPair } from '../../../src/strand/keys.js'
import { keyRotateType } from '../../../src/strand/record-type.js'
import { unseal, type SealContext } from '../../../src/strand/seal.js'
import { agentRowOf, type Agent, type AgentRow } from './agent.js'
import type { Environment } from '../environment.js'
import { OpenAgents } from './open-agents.js'
import { recordBySeq, strandEnd } from './records.js'
import { InvalidRow } from './row-shape.js'
import { agentNoKey, mutationKey, seqMax } from './tables.js'

/** With what the seed of an agent is sealed, if the creator of the agent chose it. */
export function seedContext(name: string): SealContext {
  return { purpose: 'strandfast/agent-seed/v1', boundTo: Buffer.from(name) }
}

/** The seed of an agent: the sealed one from its row or, without it, the one derived from the master seed. */
export function readAgentSeed(masterSeed: Uint8Array, name: string, sealedSeed: string | undefined): Buffer {
  if (sealedSeed === undefined) return agentSeed(masterSeed, name)
  return unseal(masterSeed, seedContext(name), Buffer.from(sealedSeed, 'hex'))
}

/** The key pair of an agent that cannot sign: signing with it throws. */
export function noKeyPair(publicKey: string): KeyPair {
  return { publicKey, secretKey: Buffer.alloc(0) }
}

/** A public key of an agent by its index, which each record has. */
export function publicKeyOf(agent: Agent, keyIndex: number): string {
  return agent.retiredKeys[keyIndex]?.publicKey ?? agent.publicKey
}

/** The properties of an agent that lists show. */
export interface AgentSummary {
  agent: Pick<Agent, 'name' | 'zone' | 'publicKey' | 'strand' | 'createdAtMs'>
  head: Agent['head']
  /** Body bytes of the whole strand. */
  strandBytes: number
  /** Bytes that were read from disk; 0 for an agent in memory. */
  readBytes: number
}

/** A page of names. `examinedTo` is the last name that was read, if others may follow in a page that is not full. */
interface NamesPage {
  names: string[]
  total: number
  examinedTo: string | undefined
}

/** The agents of one shard: all on disk, the recently used ones in memory. */
export class AgentTable {
  readonly #environment: Environment
  readonly #masterSeed: Uint8Array
  /**
   * With their key pairs: opening an agent takes as long as two signatures, and deriving its key as long as
   * two more.
   */
  readonly #open: OpenAgents
  #count: number
  #nextNo: number
  /** The server's agents in this shard. */
  readonly #hidden: Set<string>

  /** @param openMax agents that are kept in memory */
  constructor(environment: Environment, masterSeed: Uint8Array, openMax: number = limits.openAgentsMax) {
    this.#open = new OpenAgents(openMax)
    this.#environment = environment
    this.#masterSeed = masterSeed
    this.#nextNo = this.#storedCount
    this.#count = this.#nextNo
    const isStored = (name: string) => environment.agents.find(Buffer.from(name)) !== undefined
    this.#hidden = new Set([logAgent, auditAgent].filter(isStored))
  }

  /** Agents are never removed, and numbered without gaps. */
  get #storedCount(): number {
    for (const key of this.#environment.names.getKeys({ reverse: true, limit: 1 })) {
      return key.readUInt32BE(0) + 1
    }
    return 0
  }

  /** Takes back what a commit group that was dropped has changed of agents in memory, and its new agents. */
  readAgain(names: Iterable<string>): void {
    for (const name of names) {
      const open = this.#open.use(name)
      if (open === undefined) continue
      const row = this.row(name)
      if (row === undefined) this.#open.remove(open)
      else Object.assign(open, this.#load(name, row))
    }
    this.#nextNo = this.#storedCount
    this.#count = this.#nextNo
  }

  /** The number of agents, without those of the server. */
  get count(): number {
    return this.#count - this.#hidden.size
  }

  /** The agent with this name, loaded if it is not in memory; `undefined` if there is none. */
  find(name: string): Agent | undefined {
    const open = this.#open.use(name)
    if (open !== undefined) return open
    const row = this.row(name)
    if (row === undefined) return undefined
    const agent = this.#load(name, row)
    this.keep(agent)
    return agent
  }

  /**
   * The properties of an existing agent for lists. The agent is not loaded: that would derive its key pair,
   * and evict agents that are in use.
   */
  summary(name: string): AgentSummary {
    const row = this.row(name)
    assert(row !== undefined, 'an agent that is listed has its row')
    const open = this.#open.byNo(row.no)
    if (open !== undefined)
      return { agent: open, head: open.head, strandBytes: open.strandBytes, readBytes: 0 }
    return { agent: { ...row, name }, ...this.#endOf(name, row) }
  }

  /** The row of the agent; `undefined` if there is none. @throws InvalidRow */
  row(name: string): AgentRow | undefined {
    const value = this.#environment.agents.find(Buffer.from(name))
    if (value === undefined) return undefined
    const row = agentRowOf(name, value)
    // With the number of another agent, this one would continue the strand of that one.
    if (this.nameOf(row.no) !== name) throw new InvalidRow(`agents ${name}`)
    return row
  }

  /** Allocates the next agent number. */
  allocateNo(): number {
    this.#count++
    return this.#nextNo++
  }

  /** Releases the number that was allocated last, because numbers have no gaps. */
  releaseNo(): void {
    this.#count--
    this.#nextNo--
  }

  /** Evicts the agents that were not used since the last call. */
  evictIdle(): void {
    this.#open.evictIdle()
  }

  /** Keeps an agent in memory that was just created or used. */
  keep(agent: Agent): void {
    this.#open.add(agent)
  }

  /** Writes the row of a new agent, within the caller's transaction. */
  put(name: string, row: AgentRow): void {
    if (isServerAgent(name)) this.#hidden.add(name)
    this.#environment.agents.put(Buffer.from(name), Buffer.from(JSON.stringify(row)))
    this.#environment.names.put(agentNoKey(row.no), Buffer.from(name))
  }

  /** Applies changes to the row of an agent, within the caller's transaction. */
  change(name: string, change: Partial<AgentRow>): void {
    const row = this.row(name)
    assert(row !== undefined, 'a changed agent has a row')
    this.#environment.agents.put(Buffer.from(name), Buffer.from(JSON.stringify({ ...row, ...change })))
  }

  /** The name and strand of an agent by its number, also if its row is invalid. The agent is not loaded. */
  identityOf(no: number): { name: string; strand: string } {
    const open = this.#open.byNo(no)
    if (open !== undefined) return open
    const name = this.nameOf(no)
    return { name, strand: this.#strandOf(name, no) }
  }

  #strandOf(name: string, no: number): string {
    try {
      const row = this.row(name)
      assert(row !== undefined, 'an agent has its row')
      return row.strand
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error
      const genesis = recordBySeq(this.#environment, no, 0)
      assert(genesis !== undefined, 'an agent has its genesis record')
      return genesis.hash
    }
  }

  nameOf(no: number): string {
    const name = this.#environment.names.get(agentNoKey(no))
    assert(name !== undefined, 'an agent number leads to a name')
    return name.toString()
  }

  /**
   * A page of names with `prefix` after `after`, in order, and the number of names with `prefix`, which is
   * counted up to `countedRowsMax` unless it is that of all agents. Without the server's agents. The page ends
   * early at `examinedTo` when `pageWorkBytesMax` bytes of rows were read.
   */
  names({ prefix, after, limit }: { prefix: string; after: string; limit: number }): NamesPage {
    const { agents } = this.#environment
    const names: string[] = []
    let bytes = 0
    let examinedTo: string | undefined
    for (const { key, value } of agents.getRange(rangeOfNames(prefix, after))) {
      if (names.length === limit) break
      const name = key.toString()
      if (!isServerAgent(name)) names.push(name)
      bytes += value.length
      if (bytes < limits.pageWorkBytesMax) continue
      examinedTo = name
      break
    }
    const hidden = [...this.#hidden].filter((name) => name.startsWith(prefix))
    const count = prefix === '' ? this.#count : agents.countSome(rangeOfNames(prefix, ''))
    return { names, total: count - hidden.length, examinedTo }
  }

  /**
   * A page of names with `prefix` after `after` that contain a text, ignoring case, among the next names: at
   * most `agentNamesExaminedMax`, or `pageWorkBytesMax` bytes of rows. `total` counts those of the page.
   */
  namesWith(
    contains: string,
    { prefix, after, limit }: { prefix: string; after: string; limit: number },
  ): NamesPage {
    const wanted = contains.toLowerCase()
    const names: string[] = []
    let total = 0
    let examined = 0
    let bytes = 0
    let last = ''
    for (const { key, value } of this.#environment.agents.getRange(rangeOfNames(prefix, after))) {
      const name = key.toString()
      if (isServerAgent(name)) continue
      if (examined++ === limits.agentNamesExaminedMax || bytes >= limits.pageWorkBytesMax)
        return { names, total, examinedTo: last }
      last = name
      bytes += value.length
      if (!name.toLowerCase().includes(wanted)) continue
      total++
      if (names.length < limit) names.push(name)
    }
    return { names, total, examinedTo: undefined }
  }

  #keyPair(name: string, row: AgentRow): KeyPair {
    const keyPair = keyPairFromSeed(readAgentSeed(this.#masterSeed, name, row.sealedSeed))
    assert(keyPair.publicKey === row.publicKey, 'the key of an agent matches its seed')
    return keyPair
  }

  #load(name: string, row: AgentRow): Agent {
    const { head, strandBytes } = this.#endOf(name, row)
    const importing = row.importing === true
    const keyPair = importing ? noKeyPair(row.publicKey) : this.#keyPair(name, row)
    return {
      name,
      no: row.no,
      zone: row.zone,
      createdAtMs: row.createdAtMs,
      publicKey: row.publicKey,
      strand: row.strand,
      // Not that of the last record, which may be a rotation signed by the previous key.
      keyIndex: row.retiredKeys?.length ?? 0,
      keyPair,
      head,
      strandBytes,
      mutated: this.#everMutated(row.no),
      policies: row.policies ?? [],
      policiesBy: row.policiesBy,
      retiredKeys: row.retiredKeys ?? [],
      importing,
      importedRecords: row.importedRecords ?? 0,
    }
  }

  #endOf(
    name: string,
    { no, retiredKeys = [] }: AgentRow,
  ): Pick<AgentSummary, 'head' | 'strandBytes' | 'readBytes'> {
    const end = strandEnd(this.#environment, no)
    assert(end !== undefined, 'an agent has its genesis record')
    const { record, strandBytes, readBytes } = end
    assert(record.signature !== undefined, 'the last record of a strand is signed')
    // A key rotation is signed by the previous key.
    const keys = [retiredKeys.length, ...(record.type === keyRotateType ? [retiredKeys.length - 1] : [])]
    if (!keys.includes(record.keyIndex)) throw new InvalidRow(`agents ${name}`)
    const { seq, hash, hlc } = record
    const signature = Buffer.from(record.signature).toString('hex')
    return { head: { seq, hash, hlc, signature }, strandBytes, readBytes }
  }

  #everMutated(no: number): boolean {
    const range = { start: mutationKey(no, 0, 0), end: mutationKey(no, seqMax, seqMax), limit: 1 }
    for (const _key of this.#environment.mutations.getKeys(range)) return true
    return false
  }
}

/** The keys of the names with `prefix` after `after`. */
function rangeOfNames(prefix: string, after: string): { start: Buffer; end?: Buffer } {
  // A name can equal the prefix, and a page can end with that name.
  const start = after !== '' && after >= prefix ? Buffer.from(`${after}\0`) : Buffer.from(prefix)
  return prefix === '' ? { start } : { start, end: Buffer.from(`${prefix}\u{10ffff}`) }
}
