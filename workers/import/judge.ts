import type { EffectAt } from '../../src/protocol/import-messages.js'
import { lineOf, type Mutation, type ProposalRow } from '../../src/protocol/proposal-messages.js'
import { agentSeed, keyPairFromSeed } from '../../src/strand/keys.js'
import { canonicalJson } from '../../src/strand/json.js'
import type { Zone } from '../../src/strand/zone.js'
import type { CommitGroup } from '../shard/commit-group.js'
import { proposalAt } from '../mutations/pending.js'
import { isOfAgent } from '../mutations/apply.js'
import { approvalsNeeded } from '../mutations/resolve.js'
import type { ShardState } from '../shard/state.js'
import type { Agent } from '../store/tables/agent.js'
import type { StoredRecord } from '../store/tables/record-codec.js'

/** What a judge decides by. */
interface Case {
  agent: Agent
  /** No import may change the zone: it is the strand of an auth namespace. */
  zoneStays: boolean
}

/**
 * Judges by the rules of its zone what an import does to a strand that has taken writes here, record by record, before
 * anything is applied (docs/adr/0022-import.md, A strand that is here). If the key of the agent is derived from the
 * master seed, only a server can have signed. Any other key may be known to somebody, who can sign approvals in
 * anybody's name: then none counts, and nothing that needs them is imported.
 */
export class ImportJudge {
  readonly #state: ShardState
  readonly #case: Case
  readonly #group: CommitGroup
  /** The key that only a server with this master seed has. */
  readonly #ownKey: string
  readonly #rows = new Map<number, ProposalRow>()
  #zone: Zone
  #key: string
  /** Proposals that a server may not have signed: they wait here as long as any other. */
  readonly unsure = new Set<number>()

  constructor(state: ShardState, one: Case, group: CommitGroup) {
    this.#state = state
    this.#case = one
    this.#group = group
    this.#zone = one.agent.zone
    this.#key = one.agent.publicKey
    this.#ownKey = keyPairFromSeed(agentSeed(state.masterSeed, one.agent.name)).publicKey
  }

  /** Judges the next record. @returns what is wrong with it, or undefined */
  take(record: StoredRecord, effect: EffectAt | undefined): string | undefined {
    if (record.erased === true && this.#zone === 'immutable_core') {
      return 'The record is erased, which the zone of the agent never allows'
    }
    if (effect === undefined) return undefined
    switch (effect.kind) {
      case 'proposal':
        return this.#propose(record, effect)
      case 'vote':
        return this.#vote(effect)
      case 'applied':
        return this.#end(effect)
      case 'genesis':
        return undefined
      default:
        return effect.kind === 'edge' && effect.live ? undefined : this.#mutate(record, effect)
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

  #propose(record: StoredRecord, effect: Extract<EffectAt, { kind: 'proposal' }>): string | undefined {
    const { mutation, zone, proposer, line, effectiveAtMs, expiresAtMs } = effect
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

  #vote(effect: Extract<EffectAt, { kind: 'vote' }>): string | undefined {
    const row = this.#open(effect.proposalSeq)
    if (row === undefined) return 'The vote is on a proposal that is not open'
    if (effect.vote === 'withdrawn') {
      const votes = row.votes.filter(({ principal }) => principal !== effect.principal)
      this.#rows.set(row.seq, { ...row, votes })
      return undefined
    }
    if (effect.vote !== 'approve') return undefined
    if (!this.#isSure) return 'The approval may be signed by anyone who has the seed of the agent'
    const line = lineOf(effect)
    const own = line === lineOf({ ...row, principal: row.proposer })
    if (own || row.votes.some((one) => one.vote === 'approve' && lineOf(one) === line)) {
      return 'The approval is not one of another line of keys'
    }
    const vote = { principal: effect.principal, vote: effect.vote, atMs: 0 }
    const told = effect.line === undefined ? vote : { ...vote, line: effect.line }
    this.#rows.set(row.seq, { ...row, votes: [...row.votes, told] })
    return undefined
  }

  #end({ proposalSeq, state }: Extract<EffectAt, { kind: 'applied' }>): string | undefined {
    const row = this.#open(proposalSeq)
    if (row === undefined) return 'The proposal has ended before'
    if (state === 'applied' && row.effectSeq === undefined) return 'The proposal was not applied'
    this.#rows.set(row.seq, { ...row, state })
    return undefined
  }

  #mutate(record: StoredRecord, effect: EffectAt): string | undefined {
    const zone = this.#zone
    const fault = zone === 'free' ? undefined : this.#mutationFault(record, effect)
    if (fault !== undefined) return fault
    if (effect.kind === 'key') this.#key = effect.publicKey
    if (effect.kind !== 'zone') return undefined
    if (this.#case.zoneStays) return 'The strand of an auth namespace stays in its zone'
    this.#zone = effect.zone
    return undefined
  }

  #mutationFault(record: StoredRecord, effect: EffectAt): string | undefined {
    const mutation = mutationOf(effect)
    if (mutation === undefined) return undefined
    if (this.#zone === 'immutable_core' && !isOfAgent(mutation)) {
      return 'The zone of the agent allows no such mutation'
    }
    const seq = proposalSeqOf(effect)
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

  /**
   * Whether a proposal that applies itself has waited long enough; the time counts here if it is unsure who signed it.
   */
  #waitedFor({ effectiveAtMs, createdAtMs, importedAtMs }: ProposalRow, { hlc }: StoredRecord): boolean {
    if (effectiveAtMs === undefined || effectiveAtMs > hlc.ms) return false
    const { clock, proposals } = this.#state
    const knownSinceMs = importedAtMs ?? createdAtMs
    return this.#isSure || clock() >= knownSinceMs + proposals.governedAutoApproveSecs * 1_000
  }
}

/** The mutation that an effect is; undefined if it is none. */
function mutationOf(effect: EffectAt): Mutation | undefined {
  switch (effect.kind) {
    case 'record':
      return { action: effect.action, target: effect.target, targetSeq: effect.targetSeq }
    case 'zone':
      return { action: 'zone', zone: effect.zone }
    case 'policies':
      return { action: 'policies', policies: effect.policies }
    case 'key':
      return { action: 'rotate_key', publicKey: effect.publicKey }
    case 'edge':
      return { action: 'remove_edge', dst: effect.dst, edgeType: effect.edgeType }
    default:
      return undefined
  }
}

/** Seq of the proposal that a record says it came from. */
export function proposalSeqOf(effect: EffectAt): number | undefined {
  return 'mutatedBy' in effect ? effect.mutatedBy : undefined
}

/** The text by which two mutations are compared: without the sealed seed, which only a row has. */
function aboutOf(mutation: Mutation): string {
  const { action } = mutation
  return canonicalJson(action === 'rotate_key' ? { action, publicKey: mutation.publicKey } : mutation)
}
