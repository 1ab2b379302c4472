import type { EffectAt } from '../../src/protocol/import-messages.js'
import { lineageOf, type Mutation, type ProposalRow } from '../../src/protocol/proposal-messages.js'
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

/** The strand that an import continues. */
interface ImportTarget {
  agent: Agent
  /** Whether the import must not change the zone, because the strand belongs to an auth namespace. */
  zoneStays: boolean
}

/**
 * Checks an import into a strand that has accepted writes here against the rules of its zone, record by
 * record, before anything is applied (docs/adr/0022-import.md, A strand that is here). Only a server with
 * this master seed can sign with a key that is derived from it. The holder of any other key could forge
 * approvals, so records that need approvals are rejected.
 */
export class ImportJudge {
  readonly #state: ShardState
  readonly #target: ImportTarget
  readonly #group: CommitGroup
  /** The agent's key that is derived from the master seed. */
  readonly #derivedKey: string
  readonly #rows = new Map<number, ProposalRow>()
  #zone: Zone
  #key: string
  /**
   * Seqs of proposals that may have been signed outside a server with this master seed. Their delay starts
   * with the import.
   */
  readonly unverified = new Set<number>()

  constructor(state: ShardState, target: ImportTarget, group: CommitGroup) {
    this.#state = state
    this.#target = target
    this.#group = group
    this.#zone = target.agent.zone
    this.#key = target.agent.publicKey
    this.#derivedKey = keyPairFromSeed(agentSeed(state.masterSeed, target.agent.name)).publicKey
  }

  /** Checks the next record. @returns what is wrong with it, or undefined */
  take(record: StoredRecord, effect: EffectAt | undefined): string | undefined {
    if (record.erased === true && this.#zone === 'immutable_core') {
      return 'The record is erased, but the zone of the agent does not allow erased records'
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

  get #isServerKey(): boolean {
    return this.#key === this.#derivedKey
  }

  #open(seq: number): ProposalRow | undefined {
    const place = { agentNo: this.#target.agent.no, seq }
    const row = this.#rows.get(seq) ?? proposalAt(this.#state, this.#group, place)
    return row?.state === 'proposed' ? row : undefined
  }

  #propose(record: StoredRecord, effect: Extract<EffectAt, { kind: 'proposal' }>): string | undefined {
    const { mutation, zone, proposer, line, effectiveAtMs, expiresAtMs } = effect
    if (zone !== this.#zone || zone === 'free') return 'The zone of the proposal is not that of the agent'
    if (zone === 'immutable_core' && !isOfAgent(mutation))
      return 'The zone of the agent does not allow this mutation'
    if ((effectiveAtMs === undefined) === (zone === 'governed')) {
      return 'The delay of the proposal does not match the zone of the agent'
    }
    if (!this.#isServerKey) this.unverified.add(record.seq)
    this.#rows.set(record.seq, {
      agent: this.#target.agent.name,
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
    if (row === undefined) return 'The proposal of the vote is not open'
    if (effect.vote === 'withdrawn') {
      const votes = row.votes.filter(({ principal }) => principal !== effect.principal)
      this.#rows.set(row.seq, { ...row, votes })
      return undefined
    }
    if (effect.vote !== 'approve') return undefined
    if (!this.#isServerKey)
      return 'The approval does not count, because the key of the agent is not derived from the master seed'
    const line = lineageOf(effect)
    const isProposer = line === lineageOf({ ...row, principal: row.proposer })
    if (isProposer || row.votes.some((one) => one.vote === 'approve' && lineageOf(one) === line)) {
      return 'The key lineage of the approval has proposed or approved this already'
    }
    const vote = {
      principal: effect.principal,
      vote: effect.vote,
      atMs: 0,
      ...(effect.line !== undefined && { line: effect.line }),
    }
    this.#rows.set(row.seq, { ...row, votes: [...row.votes, vote] })
    return undefined
  }

  #end({ proposalSeq, state }: Extract<EffectAt, { kind: 'applied' }>): string | undefined {
    const row = this.#open(proposalSeq)
    if (row === undefined) return 'The proposal is not open'
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
    if (this.#target.zoneStays) return 'The zone of an auth namespace cannot be changed'
    this.#zone = effect.zone
    return undefined
  }

  #mutationFault(record: StoredRecord, effect: EffectAt): string | undefined {
    const mutation = mutationOf(effect)
    if (mutation === undefined) return undefined
    if (this.#zone === 'immutable_core' && !isOfAgent(mutation)) {
      return 'The zone of the agent does not allow this mutation'
    }
    const seq = proposalSeqOf(effect)
    const row = seq === undefined ? undefined : this.#open(seq)
    if (
      row === undefined ||
      row.effectSeq !== undefined ||
      comparedText(row.mutation) !== comparedText(mutation)
    ) {
      return 'The zone of the agent requires an open proposal for this mutation'
    }
    const approvals = row.votes.filter(({ vote }) => vote === 'approve').length
    if (approvals < approvalsNeeded(row) && !this.#hasWaited(row, record)) {
      return 'The zone of the agent requires more approvals or a longer delay for this mutation'
    }
    this.#rows.set(row.seq, { ...row, effectSeq: record.seq })
    return undefined
  }

  /**
   * Whether the delay of a proposal is over. For unverified signatures, the delay is measured by the clock of
   * this server.
   */
  #hasWaited({ effectiveAtMs, createdAtMs, importedAtMs }: ProposalRow, { hlc }: StoredRecord): boolean {
    if (effectiveAtMs === undefined || effectiveAtMs > hlc.ms) return false
    const { clock, proposals } = this.#state
    const knownSinceMs = importedAtMs ?? createdAtMs
    return this.#isServerKey || clock() >= knownSinceMs + proposals.governedAutoApproveSecs * 1_000
  }
}

/** The mutation of an effect; undefined if the effect is not a mutation. */
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

/** The seq of the proposal that a record applies; undefined if there is none. */
export function proposalSeqOf(effect: EffectAt): number | undefined {
  return 'mutatedBy' in effect ? effect.mutatedBy : undefined
}

/** The text by which two mutations are compared: without the sealed seed, which only a row has. */
function comparedText(mutation: Mutation): string {
  const { action } = mutation
  return canonicalJson(action === 'rotate_key' ? { action, publicKey: mutation.publicKey } : mutation)
}
