import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import { auditAgent, isServerAgent, logAgent } from '../../../src/strand/organism-id.js'
import { agentSeed, keyPairFromSeed, type KeyPair } from '../../../src/strand/keys.js'
import { unseal, type SealedPlace } from '../../../src/strand/seal.js'
import { agentRowOf, type Agent, type AgentRow } from './agent.js'
import type { Environment } from '../environment.js'
import { OpenAgents } from './open-agents.js'
import { strandEnd } from './records.js'
import { agentNoKey, mutationKey, seqMax } from './tables.js'

/** The sealed place of a seed that the agent's creator chose. */
export function seedPlace(name: string): SealedPlace {
  return { purpose: 'strandfast/agent-seed/v1', owner: Buffer.from(name) }
}

/** The seed of an agent: the sealed one of its row, or the one that is derived. */
export function keptSeed(masterSeed: Uint8Array, name: string, sealedSeed: string | undefined): Buffer {
  if (sealedSeed === undefined) return agentSeed(masterSeed, name)
  return unseal(masterSeed, seedPlace(name), Buffer.from(sealedSeed, 'hex'))
}

/** The key pair of an agent that cannot sign: signing by it throws. */
export function noKeyPair(publicKey: string): KeyPair {
  return { publicKey, secretKey: Buffer.alloc(0) }
}

/** A public key of an agent by its number; a record has the number of the key that signed it. */
export function publicKeyOf(agent: Agent, keyIndex: number): string {
  return agent.retiredKeys[keyIndex]?.publicKey ?? agent.publicKey
}

/** An agent as lists show it. */
export interface LookedAt {
  agent: Pick<Agent, 'name' | 'zone' | 'publicKey' | 'strand' | 'createdAtMs'>
  head: Agent['head']
  /** Bytes of its bodies. */
  strandBytes: number
  /** What was read to find it; 0 for an agent in memory. */
  readBytes: number
}

/** The agents of one shard: all on disk, those used last in memory. */
export class AgentTable {
  readonly #environment: Environment
  readonly #masterSeed: Uint8Array
  /** With their key pairs: opening an agent takes as long as two signatures, and deriving its key two more. */
  readonly #open: OpenAgents
  #count: number
  #nextNo: number
  /** The server's own agents that are in this shard. */
  readonly #hidden: Set<string>

  /** @param openMax agents that are kept in memory */
  constructor(environment: Environment, masterSeed: Uint8Array, openMax: number = limits.openAgentsMax) {
    this.#open = new OpenAgents(openMax)
    this.#environment = environment
    this.#masterSeed = masterSeed
    this.#nextNo = 0
    for (const key of environment.names.getKeys({ reverse: true, limit: 1 })) {
      this.#nextNo = key.readUInt32BE(0) + 1
    }
    // Agents are never removed and numbered without gaps.
    this.#count = this.#nextNo
    this.#hidden = new Set([logAgent, auditAgent].filter((name) => this.row(name) !== undefined))
  }

  /** How many agents there are, without the server's own. */
  get count(): number {
    return this.#count - this.#hidden.size
  }

  /** The agent of that name, opened if it is not in memory; `undefined` when there is none. */
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
   * What lists show of an agent that there is. It is not opened for that: its key pair would have to be derived, and agents
   * that are in use would have to make room for it.
   */
  look(name: string): LookedAt {
    const row = this.row(name)
    assert(row !== undefined, 'an agent that is listed has its row')
    const open = this.#open.byNo(row.no)
    if (open !== undefined)
      return { agent: open, head: open.head, strandBytes: open.strandBytes, readBytes: 0 }
    return { agent: { ...row, name }, ...this.#endOf(row.no) }
  }

  /** The row of the agent; `undefined` when there is none. */
  row(name: string): AgentRow | undefined {
    const value = this.#environment.agents.find(Buffer.from(name))
    return value === undefined ? undefined : agentRowOf(value)
  }

  /** Takes the next agent number. */
  takeNo(): number {
    this.#count++
    return this.#nextNo++
  }

  /** Gives back the number that was taken last: numbers have no gaps. */
  giveBackNo(): void {
    this.#count--
    this.#nextNo--
  }

  /** Drops agents from memory that were not used since the last call: they are on disk. */
  rest(): void {
    this.#open.turnOver()
  }

  /** Keeps an agent that was just made or used in memory. */
  keep(agent: Agent): void {
    this.#open.keep(agent)
  }

  /** Writes the row of a new agent, within the caller's transaction. */
  put(name: string, row: AgentRow): void {
    if (isServerAgent(name)) this.#hidden.add(name)
    this.#environment.agents.put(Buffer.from(name), Buffer.from(JSON.stringify(row)))
    this.#environment.names.put(agentNoKey(row.no), Buffer.from(name))
  }

  /** Writes changes of an agent into its row, within the caller's transaction. */
  change(name: string, change: Partial<AgentRow>): void {
    const row = this.row(name)
    assert(row !== undefined, 'an agent has its row before anything of it changes')
    this.#environment.agents.put(Buffer.from(name), Buffer.from(JSON.stringify({ ...row, ...change })))
  }

  /** Name and strand of an agent by its number, without opening it. */
  identityOf(no: number): { name: string; strand: string } {
    const open = this.#open.byNo(no)
    if (open !== undefined) return open
    const name = this.nameOf(no)
    const row = this.row(name)
    assert(row !== undefined, 'an agent has its row')
    return { name, strand: row.strand }
  }

  /** The name of an agent by its number. */
  nameOf(no: number): string {
    const name = this.#environment.names.get(agentNoKey(no))
    assert(name !== undefined, 'an agent number leads to a name')
    return name.toString()
  }

  /**
   * Names after `after` that start with `prefix`, in order, and their number in all, without the server's own agents.
   */
  names({ prefix, after, limit }: { prefix: string; after: string; limit: number }): {
    names: string[]
    total: number
  } {
    const end = Buffer.from(`${prefix}\u{10ffff}`)
    // An agent can be named like the prefix, and a page can end with it.
    const from = after !== '' && after >= prefix ? Buffer.from(`${after}\0`) : Buffer.from(prefix)
    const range = prefix === '' ? { start: from } : { start: from, end }
    const names: string[] = []
    for (const key of this.#environment.agents.getKeys({ ...range, limit: limit + this.#hidden.size })) {
      const name = key.toString()
      if (!isServerAgent(name) && names.length < limit) names.push(name)
    }
    const total =
      prefix === '' ? this.#count : this.#environment.agents.getKeysCount({ start: Buffer.from(prefix), end })
    const hidden = [...this.#hidden].filter((name) => name.startsWith(prefix))
    return { names, total: total - hidden.length }
  }

  #keyPair(name: string, row: AgentRow): KeyPair {
    const keyPair = keyPairFromSeed(keptSeed(this.#masterSeed, name, row.sealedSeed))
    assert(keyPair.publicKey === row.publicKey, 'the key of an agent is the one of its seed')
    return keyPair
  }

  #load(name: string, row: AgentRow): Agent {
    const { head, strandBytes } = this.#endOf(row.no)
    const importing = row.importing === true
    const keyPair = importing ? noKeyPair(row.publicKey) : this.#keyPair(name, row)
    return {
      name,
      no: row.no,
      zone: row.zone,
      createdAtMs: row.createdAtMs,
      publicKey: row.publicKey,
      strand: row.strand,
      // The last record may be the rotation itself, which the key before it signed.
      keyIndex: row.retiredKeys?.length ?? 0,
      keyPair,
      head,
      strandBytes,
      mutated: this.#everMutated(row.no),
      policies: row.policies ?? [],
      policiesBy: row.policiesBy,
      retiredKeys: row.retiredKeys ?? [],
      importing,
      fresh: row.fresh === true,
      owedErasures: row.owedErasures ?? [],
    }
  }

  #endOf(no: number): Pick<LookedAt, 'head' | 'strandBytes' | 'readBytes'> {
    const end = strandEnd(this.#environment, no)
    assert(end !== undefined, 'an agent has its genesis record')
    const { record, strandBytes, readBytes } = end
    assert(record.signature !== undefined, 'the last record of a strand is signed')
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
