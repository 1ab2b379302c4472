import type {
  Mutation,
  ProposalPlace,
  ProposalRow,
  RecordMutation,
  Vote,
} from '../../../src/protocol/proposal-messages.js'
import type { Policy } from '../../../src/auth/row-policy.js'
import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { Zone } from '../../../src/strand/zone.js'
import type { Environment } from '../environment.js'
import type { StoredRecord } from './record-codec.js'
import { recordBySeq } from './records.js'
import { agentNoKey, runKey } from './tables.js'

/*
 * Proposals that ended long ago: their rows hold only the places of their records, and the rest is read from these
 * (docs/adr/0014-proposals.md).
 */

/** What is kept of a proposal in place of its row. */
interface Places {
  createdAtMs: number
  endedAtMs: number
  /** Seq of the record that ended it. */
  endSeq: number
  /** Seq of the record of each vote, and the time of the vote. */
  votes: [seq: number, atMs: number][]
}

/** A proposal whose row is replaced. */
export interface PastProposal extends ProposalPlace {
  past: Places
}

const ROW_MS = limits.proposalRowDays * 86_400_000

/** Looks through the rows of proposals, a few at a time, for those that ended long ago. */
export class ProposalAging {
  /** Where to continue; at the beginning when absent. */
  #after: ProposalPlace | undefined
  #restUntilMs = 0

  /** The proposals among the next rows that ended long enough ago. */
  look(environment: Environment, nowMs: number): PastProposal[] {
    // A clock that was set back delays it by the pause at most.
    this.#restUntilMs = Math.min(this.#restUntilMs, nowMs + limits.proposalAgingMs)
    if (nowMs < this.#restUntilMs) return []
    const { agentNo, seq } = this.#after ?? { agentNo: 0, seq: -1 }
    const range = { start: runKey(agentNo, seq + 1), limit: limits.proposalAgingRows }
    const found: PastProposal[] = []
    let last: ProposalPlace | undefined
    let rows = 0
    for (const { key, value } of environment.proposals.getRange(range)) {
      rows++
      last = { agentNo: key.readUInt32BE(0), seq: key.readUIntBE(4, 6) }
      const past = placesOf(JSON.parse(value.toString()) as ProposalRow | { past: Places }, nowMs)
      if (past !== undefined) found.push({ ...last, past })
    }
    this.#after = rows < limits.proposalAgingRows ? undefined : last
    if (this.#after === undefined) this.#restUntilMs = nowMs + limits.proposalAgingMs
    return found
  }
}

/**
 * The places of the records of a proposal whose row can be replaced. The row stays if the strand does not contain
 * everything: if the proposal is about an API key, whose name is on no strand, was imported, or ended before places
 * were kept.
 */
function placesOf(row: ProposalRow | { past: Places }, nowMs: number): Places | undefined {
  if ('past' in row || row.endedAtMs === undefined || row.endSeq === undefined) return undefined
  if (row.endedAtMs + ROW_MS > nowMs || row.importedAtMs !== undefined) return undefined
  if (row.mutation.action === 'make_api_key') return undefined
  const votes: Places['votes'] = []
  for (const { seq, atMs } of row.votes) {
    if (seq === undefined) return undefined
    votes.push([seq, atMs])
  }
  const { createdAtMs, endedAtMs, endSeq } = row
  return { createdAtMs, endedAtMs, endSeq, votes }
}

/** Replaces rows by the places of their records, within the caller's transaction. */
export function putPastProposals({ proposals }: Environment, past: readonly PastProposal[]): void {
  for (const { agentNo, seq, past: places } of past) {
    proposals.put(runKey(agentNo, seq), Buffer.from(JSON.stringify({ past: places })))
  }
}

/** A proposal by its stored form: the row itself, or the records whose places it holds. */
export function proposalOf(environment: Environment, place: ProposalPlace, value: Buffer): ProposalRow {
  const kept = JSON.parse(value.toString()) as ProposalRow | { past: Places }
  return 'past' in kept ? fromStrand(environment, place, kept.past) : kept
}

/** A mutation by the names that its members have in the body of `sys/proposal`. */
type Told =
  | { action: 'zone'; zone: Zone }
  | { action: 'policies'; policies: readonly Policy[] }
  | { action: 'remove_edge'; edge_type: string; dst: string }
  | { action: 'rotate_key'; public_key: string }
  | { action: 'make_api_key' }
  | { action: RecordMutation['action']; target: string; target_seq: number }

/** Members of the bodies of `sys/proposal`, `sys/vote` and `sys/applied` (docs/FORMAT.md, Proposals). */
interface Proposed extends Pick<Vote, 'principal' | 'line'> {
  in_zone: ProposalRow['zone']
  effective_at_ms: number | null
  expires_at_ms: number
}
interface Voted extends Pick<Vote, 'principal' | 'line' | 'vote'> {
  proposal_seq: number
}
interface Ended extends Pick<ProposalRow, 'state' | 'reason'> {
  proposal_seq: number
}

function fromStrand(environment: Environment, { agentNo, seq }: ProposalPlace, past: Places): ProposalRow {
  const name = environment.names.get(agentNoKey(agentNo))
  assert(name !== undefined, 'an agent number leads to a name')
  const read = <T>(at: number, type: string): { record: StoredRecord; body: T } => {
    const record = recordBySeq(environment, agentNo, at)
    assert(record?.type === type, `the strand has a ${type} where the proposal says`)
    return { record, body: JSON.parse(asBuffer(record.body).toString()) as T }
  }
  const { record, body } = read<Proposed & Told>(seq, 'sys/proposal')
  const { body: end } = read<Ended>(past.endSeq, 'sys/applied')
  assert(end.proposal_seq === seq, 'a proposal is ended by its own record')
  const votes = past.votes.map(([at, atMs]): Vote => {
    const { body: voted } = read<Voted>(at, 'sys/vote')
    assert(voted.proposal_seq === seq, 'a vote is on its own proposal')
    return { ...authorIn(voted), vote: voted.vote, atMs, seq: at }
  })
  const { principal: proposer, line } = authorIn(body)
  return {
    agent: name.toString(),
    seq,
    hash: record.hash,
    mutation: mutationIn(body),
    zone: body.in_zone,
    state: end.state,
    proposer,
    ...(line !== undefined && { line }),
    votes,
    createdAtMs: past.createdAtMs,
    ...(body.effective_at_ms !== null && { effectiveAtMs: body.effective_at_ms }),
    expiresAtMs: body.expires_at_ms,
    endedAtMs: past.endedAtMs,
    endSeq: past.endSeq,
    ...(end.reason !== undefined && { reason: end.reason }),
    ofStrand: true,
  }
}

function authorIn({ principal, line }: Pick<Vote, 'principal' | 'line'>): Pick<Vote, 'principal' | 'line'> {
  return line === undefined ? { principal } : { principal, line }
}

/** A mutation by the names that its members have on the strand. */
function mutationIn(told: Told): Mutation {
  switch (told.action) {
    case 'zone':
      return { action: told.action, zone: told.zone }
    case 'policies':
      return { action: told.action, policies: told.policies }
    case 'remove_edge':
      return { action: told.action, edgeType: told.edge_type, dst: told.dst }
    case 'rotate_key':
      return { action: told.action, publicKey: told.public_key }
    case 'make_api_key':
      throw new Error('The row of a proposal about an API key stays')
    default:
      return { action: told.action, target: told.target, targetSeq: told.target_seq }
  }
}
