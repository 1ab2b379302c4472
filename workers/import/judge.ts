import type { MeaningAt } from '../../src/protocol/import-messages.js'
import { lineOf, type Mutation, type ProposalRow } from '../../src/protocol/proposal-messages.js'
import { agentSeed } from '../../src/strand/agent-seed.js'
import { canonicalJson } from '../../src/strand/json.js'
import { keyPairFromSeed } from '../../src/strand/keys.js'
import type { Zone } from '../../src/strand/zone.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { proposalAt } from '../mutations/pending.js'
import { isOfAgent } from '../mutations/apply.js'
import { approvalsNeeded } from '../mutations/resolve.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/agent.js'
import type { StoredRecord } from '../store/record-codec.js'

/** What a judge decides by. */
interface Case {
  agent: Agent
  /** The strand can be led out of its zone by nobody who imports: it tells of an auth namespace. */
  zoneStays: boolean
}

/**
 * Judges by the rules of its zone what an import does to a strand that has taken writes here, record by record, before
 * anything of it is taken (docs/adr/0022-import.md, A strand that is here). Where the key of the agent is derived from the
 * master seed, only a server can have signed. Any other key may be known to somebody, who can sign approvals of whomever:
 * none counts then, and nothing that needs them happens by an import.
 */
export class Judge {
  readonly #state: ShardState
  readonly #case: Case
  readonly #group: CommitGroup
  /** The key that nobody but a server with this master seed has. */
  readonly #ownKey: string
  readonly #rows = new Map<number, ProposalRow>()
  #zone: Zone
  #key: string
  /** Proposals that were not signed by a server surely: they wait here as long as any other. */
  readonly unsure = new Set<number>()

  constructor(state: ShardState, one: Case, group: CommitGroup) {
    this.#state = state
    this.#case = one
    this.#group = group
    this.#zone = one.agent.zone
    this.#key = one.agent.publicKey
    this.#ownKey = keyPairFromSeed(agentSeed(state.masterSeed, one.agent.name)).publicKey
  }

  /** Takes the next record. @returns what is wrong with it, or undefined */
  take(record: StoredRecord, meaning: MeaningAt | undefined): string | undefined {
    if (record.erased === true && this.#zone === 'immutable_core') {
      return 'The record is erased, which the zone of the agent never allows'
    }
    if (meaning === undefined) return undefined
    switch (meaning.kind) {
      case 'proposal':
        return this.#propose(record, meaning)
      case 'vote':
        return this.#vote(meaning)
      case 'applied':
        return this.#end(meaning)
      case 'genesis':
        return undefined
      default:
        return meaning.kind === 'edge' && meaning.live ? undefined : this.#mutate(record, meaning)
    }
  }

  get #isSure(): boolean {
    return this.#key === this.#ownKey
  }

  #open(seq: number): ProposalRow | undefined {
    const place = { agentNo: this.#case.agent.no, seq }
    const row = this.#rows.get(seq) ?? proposalAt(this.#state, this.#group, place)
    return row?.state === 'proposed' ? row : undefined
  }

  #propose(record: StoredRecord, meaning: Extract<MeaningAt, { kind: 'proposal' }>): string | undefined {
    const { mutation, zone, proposer, line, effectiveAtMs, expiresAtMs } = meaning
    if (zone !== this.#zone || zone === 'free') return 'The proposal is not one of the zone of the agent'
    if (zone === 'immutable_core' && !isOfAgent(mutation))
      return 'The zone of the agent allows no such mutation'
    if ((effectiveAtMs === undefined) === (zone === 'governed')) {
      return 'The proposal does not wait as the zone of the agent asks'
    }
    if (!this.#isSure) this.unsure.add(record.seq)
    this.#rows.set(record.seq, {
      agent: this.#case.agent.name,
      seq: record.seq,
      hash: record.hash,
      mutation,
      zone,
      state: 'proposed',
      proposer,
      ...(line !== undefined && { line }),
      votes: [],
      createdAtMs: record.hlc.ms,
      expiresAtMs,
      ...(effectiveAtMs !== undefined && { effectiveAtMs }),
      importedAtMs: this.#state.clock(),
    })
    return undefined
  }

  #vote(meaning: Extract<MeaningAt, { kind: 'vote' }>): string | undefined {
    const row = this.#open(meaning.proposalSeq)
    if (row === undefined) return 'The vote is on a proposal that is not open'
    if (meaning.vote !== 'approve') return undefined
    if (!this.#isSure) return 'The approval may be signed by anyone who has the seed of the agent'
    const line = lineOf(meaning)
    const own = line === lineOf({ ...row, principal: row.proposer })
    if (own || row.votes.some((one) => one.vote === 'approve' && lineOf(one) === line)) {
      return 'The approval is not one of another line of keys'
    }
    const vote = { principal: meaning.principal, vote: meaning.vote, atMs: 0 }
    const told = meaning.line === undefined ? vote : { ...vote, line: meaning.line }
    this.#rows.set(row.seq, { ...row, votes: [...row.votes, told] })
    return undefined
  }

  #end({ proposalSeq, state }: Extract<MeaningAt, { kind: 'applied' }>): string | undefined {
    const row = this.#open(proposalSeq)
    if (row === undefined) return 'The proposal has ended before'
    if (state === 'applied' && row.effectSeq === undefined) return 'The proposal was not applied'
    this.#rows.set(row.seq, { ...row, state })
    return undefined
  }

  #mutate(record: StoredRecord, meaning: MeaningAt): string | undefined {
    const zone = this.#zone
    const fault = zone === 'free' ? undefined : this.#mutationFault(record, meaning)
    if (fault !== undefined) return fault
    if (meaning.kind === 'key') this.#key = meaning.publicKey
    if (meaning.kind !== 'zone') return undefined
    if (this.#case.zoneStays) return 'The strand of an auth namespace stays in its zone'
    this.#zone = meaning.zone
    return undefined
  }

  #mutationFault(record: StoredRecord, meaning: MeaningAt): string | undefined {
    const mutation = mutationOf(meaning)
    if (mutation === undefined) return undefined
    if (this.#zone === 'immutable_core' && !isOfAgent(mutation)) {
      return 'The zone of the agent allows no such mutation'
    }
    const seq = proposalSeqOf(meaning)
    const row = seq === undefined ? undefined : this.#open(seq)
    if (row === undefined || row.effectSeq !== undefined || aboutOf(row.mutation) !== aboutOf(mutation)) {
      return 'The zone of the agent asks for a proposal of this, which is not open'
    }
    const approvals = row.votes.filter(({ vote }) => vote === 'approve').length
    if (approvals < approvalsNeeded(row) && !this.#waitedFor(row, record)) {
      return 'The zone of the agent asks for more approvals of this, or more time'
    }
    this.#rows.set(row.seq, { ...row, effectSeq: record.seq })
    return undefined
  }

  /** Whether a proposal that applies itself has had its time; here, where nobody can be sure who has signed it. */
  #waitedFor({ effectiveAtMs, createdAtMs, importedAtMs }: ProposalRow, { hlc }: StoredRecord): boolean {
    if (effectiveAtMs === undefined || effectiveAtMs > hlc.ms) return false
    const { clock, proposals } = this.#state
    const knownSinceMs = importedAtMs ?? createdAtMs
    return this.#isSure || clock() >= knownSinceMs + proposals.governedAutoApproveSecs * 1_000
  }
}

/** The mutation that a record tells of; undefined for what is none. */
function mutationOf(meaning: MeaningAt): Mutation | undefined {
  switch (meaning.kind) {
    case 'record':
      return { action: meaning.action, target: meaning.target, targetSeq: meaning.targetSeq }
    case 'zone':
      return { action: 'zone', zone: meaning.zone }
    case 'policies':
      return { action: 'policies', policies: meaning.policies }
    case 'key':
      return { action: 'rotate_key', publicKey: meaning.publicKey }
    case 'edge':
      return { action: 'remove_edge', dst: meaning.dst, edgeType: meaning.edgeType }
    default:
      return undefined
  }
}

/** Seq of the proposal that a record says it came from. */
export function proposalSeqOf(meaning: MeaningAt): number | undefined {
  return 'mutatedBy' in meaning ? meaning.mutatedBy : undefined
}

/** What a mutation is, by which two are compared: without the seed that waits in a row. */
function aboutOf(mutation: Mutation): string {
  const { action } = mutation
  return canonicalJson(action === 'rotate_key' ? { action, publicKey: mutation.publicKey } : mutation)
}
