import { mutationOfBody, type MutationBody } from '../../../src/protocol/proposal-body.js'
import {
  isProposalRow,
  type ProposalCursor,
  type ProposalRow,
  type Vote,
} from '../../../src/protocol/proposal-messages.js'
import { assert } from '../../../src/base/assert.js'
import { asBuffer } from '../../../src/base/bytes.js'
import { type Checked, isNumber, listOf, fields } from '../../../src/base/shape.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { Environment } from '../environment.js'
import type { TableSpec } from '../table-spec.js'
import type { StoredRecord } from './record-codec.js'
import { recordBySeq } from './records.js'
import { type ScanBudget, scanBudget, takeRow } from './scan-budget.js'
import { agentNoKey, jsonOf, runKey } from './tables.js'

/*
 * Proposals that ended long ago. Their rows contain only references to their records, and the rest is read
 * from the records (docs/adr/0014-proposals.md).
 */

const isSeqAndTime = (value: unknown): value is [seq: number, atMs: number] =>
  Array.isArray(value) && value.every(isNumber)

const isRecordRefs = fields({
  createdAtMs: isNumber,
  endedAtMs: isNumber,
  endSeq: isNumber,
  /** The seq of the record of each vote, and the time of the vote. */
  votes: listOf(isSeqAndTime),
})

/** References to the records of a proposal, with the times that are not in them. */
type RecordRefs = Checked<typeof isRecordRefs>

/** A proposal whose row is replaced. */
export interface PastProposal extends ProposalCursor {
  past: RecordRefs
}

const ROW_MS = limits.proposalRowDays * 86_400_000

/** A proposal that is read, and the budget of its scan, if there is one. */
export interface ScannedProposal extends ProposalCursor {
  budget?: ScanBudget
}

/** Scans the rows of proposals, a few at a time, for proposals that ended long ago. */
export class ProposalAging {
  /** Where to continue; at the beginning if absent. */
  #after: ProposalCursor | undefined
  #pauseUntilMs = 0

  /** The proposals in the next rows that ended long enough ago. */
  scan(environment: Environment, nowMs: number): PastProposal[] {
    // If the clock was set back, the scan is delayed by at most one pause.
    this.#pauseUntilMs = Math.min(this.#pauseUntilMs, nowMs + limits.proposalAgingMs)
    if (nowMs < this.#pauseUntilMs) return []
    const { agentNo, seq } = this.#after ?? { agentNo: 0, seq: -1 }
    const found: PastProposal[] = []
    const budget = scanBudget(limits.proposalAgingRows)
    let last: ProposalCursor | undefined
    let isCut = false
    for (const { key, value } of environment.proposals.getRange({ start: runKey(agentNo, seq + 1) })) {
      isCut = !takeRow(budget)
      if (isCut) break
      budget.bytes -= value.length
      last = { agentNo: key.readUInt32BE(0), seq: key.readUIntBE(4, 6) }
      const stored = storedProposal(value)
      const past = stored && recordRefsOf(stored, nowMs)
      if (past !== undefined) found.push({ ...last, past })
    }
    this.#after = isCut ? last : undefined
    if (this.#after === undefined) this.#pauseUntilMs = nowMs + limits.proposalAgingMs
    return found
  }
}

/**
 * References to the records of a proposal whose row can be replaced; otherwise `undefined`. The row is needed
 * if the strand does not contain everything: if the proposal is about an API key, was imported, or ended
 * before rows had the seqs of votes.
 */
function recordRefsOf(row: ProposalRow | { past: RecordRefs }, nowMs: number): RecordRefs | undefined {
  if ('past' in row || row.endedAtMs === undefined || row.endSeq === undefined) return undefined
  if (row.endedAtMs + ROW_MS > nowMs || row.importedAtMs !== undefined) return undefined
  if (row.mutation.action === 'make_api_key') return undefined
  const votes: RecordRefs['votes'] = []
  for (const { seq, atMs } of row.votes) {
    if (seq === undefined) return undefined
    votes.push([seq, atMs])
  }
  const { createdAtMs, endedAtMs, endSeq } = row
  return { createdAtMs, endedAtMs, endSeq, votes }
}

/** Proposals whose rows are replaced by references to their records. */
export const pastProposals: TableSpec<{ environment: Environment; aging: ProposalAging }, PastProposal[]> = {
  open: (environment) => ({ environment, aging: new ProposalAging() }),
  changes: () => [],
  rows: ({ length }) => length,
  put({ environment }, changes) {
    for (const { agentNo, seq, past } of changes)
      environment.proposals.put(runKey(agentNo, seq), Buffer.from(JSON.stringify({ past })))
  },
}

/**
 * Decodes a stored proposal: from the row itself, or from the records that it references.
 * @returns undefined for a row that is not a proposal, which counts as missing
 */
export function proposalOf(
  environment: Environment,
  place: ScannedProposal,
  value: Buffer,
): ProposalRow | undefined {
  if (place.budget !== undefined) place.budget.bytes -= value.length
  const stored = storedProposal(value)
  if (stored === undefined) return undefined
  if ('past' in stored) return fromStrand(environment, place, stored.past)
  return stored.seq === place.seq ? stored : undefined
}

/** A stored proposal; undefined if the row is invalid. */
export function storedProposal(value: Buffer): ProposalRow | { past: RecordRefs } | undefined {
  const stored = jsonOf(value)
  return isPast(stored) || isProposalRow(stored) ? stored : undefined
}

const isPast = fields({ past: isRecordRefs })

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

function fromStrand(
  environment: Environment,
  { agentNo, seq, budget }: ScannedProposal,
  past: RecordRefs,
): ProposalRow {
  const name = environment.names.get(agentNoKey(agentNo))
  assert(name !== undefined, 'an agent number leads to a name')
  const read = <T>(at: number, type: string): { record: StoredRecord; body: T } => {
    const record = recordBySeq(environment, agentNo, at)
    assert(record?.type === type, `record ${at} of the proposal is a ${type}`)
    if (budget !== undefined) budget.bytes -= record.body.length
    return { record, body: JSON.parse(asBuffer(record.body).toString()) as T }
  }
  const { record, body } = read<Proposed & MutationBody>(seq, 'sys/proposal')
  const { body: end } = read<Ended>(past.endSeq, 'sys/applied')
  assert(end.proposal_seq === seq, 'the last record of a proposal names the proposal')
  const votes = past.votes.map(([at, atMs]): Vote => {
    const { body: voted } = read<Voted>(at, 'sys/vote')
    assert(voted.proposal_seq === seq, 'the votes of a proposal name the proposal')
    return { ...authorIn(voted), vote: voted.vote, atMs, seq: at }
  })
  const { principal: proposer, line } = authorIn(body)
  return {
    agent: name.toString(),
    seq,
    hash: record.hash,
    mutation: mutationOfBody(body),
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
