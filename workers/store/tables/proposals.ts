import type { ProposalPlace, ProposalRow } from '../../../src/protocol/proposal-messages.js'
import { assert } from '../../../src/base/assert.js'
import type { Environment } from '../environment.js'
import { proposalOf } from './past-proposals.js'
import { expiryKey, runKey, seqMax } from './tables.js'

/** A proposal to be written, with the number of its agent. */
export interface PendingProposal {
  agentNo: number
  row: ProposalRow
  /** It is open but has no due time: its agent is being imported. */
  held?: true
}

/** What the shares of an agent's open proposals are counted by. */
export interface OpenShare {
  /** Of the proposer. */
  line: string
  erases: boolean
}

/** Key of a proposal: the number of its agent u32, the seq of its record u48. */
export const proposalKey = runKey

/**
 * The target of a proposal, by which an open one is found: a record, an edge, one property of the agent, or a key. One
 * target has at most one open proposal.
 */
export function proposalTarget({ mutation }: Pick<ProposalRow, 'mutation'>): string {
  // A type of edge contains no space.
  if (mutation.action === 'remove_edge') return `edge:${mutation.edgeType} ${mutation.dst}`
  if (mutation.action === 'make_api_key') return `key:${mutation.keyId}`
  return 'target' in mutation ? `record:${mutation.target}` : mutation.action
}

/** One proposal: from its row, or from its records. */
export function findProposal(
  environment: Environment,
  { agentNo, seq }: ProposalPlace,
): ProposalRow | undefined {
  const value = environment.proposals.find(proposalKey(agentNo, seq))
  return value === undefined ? undefined : proposalOf(environment, { agentNo, seq }, value)
}

/** Seq of the open proposal about a target. */
export function openProposalAbout(
  environment: Environment,
  agentNo: number,
  target: string,
): number | undefined {
  return environment.proposalTargets.get(targetKey(agentNo, target))?.readUIntBE(0, 6)
}

/** Places of proposals after `after`, in order; of open ones only, or of all. */
export function* proposalPlaces(
  environment: Environment,
  { after, open, agentNo }: { after?: ProposalPlace; open: boolean; agentNo?: number },
): Generator<ProposalPlace> {
  const start = after === undefined ? proposalKey(agentNo ?? 0, 0) : proposalKey(after.agentNo, after.seq + 1)
  const end = agentNo === undefined ? undefined : proposalKey(agentNo + 1, 0)
  const table = open ? environment.proposalsOpen : environment.proposals
  for (const key of table.getKeys({ start, ...(end !== undefined && { end }) })) {
    yield { agentNo: key.readUInt32BE(0), seq: key.readUIntBE(4, 6) }
  }
}

/** Places of open proposals that are due, the longest due first. */
export function dueProposals(
  environment: Environment,
  { nowMs, limit }: { nowMs: number; limit: number },
): ProposalPlace[] {
  // A key of a due time without a proposal comes before those of the same millisecond with one.
  const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs + 1, Buffer.alloc(0)), limit }
  return [...environment.proposalDues.getKeys(range)].map((key) => ({
    agentNo: key.readUInt32BE(6),
    seq: key.readUIntBE(10, 6),
  }))
}

/** How many proposals of an agent are open. */
export function openProposalCount(environment: Environment, agentNo: number): number {
  return environment.proposalsOpen.getKeysCount({
    start: proposalKey(agentNo, 0),
    end: proposalKey(agentNo, seqMax),
  })
}

/** Writes proposals and their indexes, within the caller's transaction. */
export function putProposals(environment: Environment, pending: Iterable<PendingProposal>): void {
  for (const { agentNo, row, held } of pending) {
    assert(row.state !== 'approved', 'what is approved is applied in the same transaction')
    const key = proposalKey(agentNo, row.seq)
    const target = targetKey(agentNo, proposalTarget(row))
    const due = expiryKey(dueAtMs(row), key)
    if (row.state === 'proposed') {
      environment.proposalsOpen.put(key, nothing)
      environment.proposalTargets.put(target, seqValue(row.seq))
      if (held === true) environment.proposalDues.remove(due)
      else environment.proposalDues.put(due, nothing)
    } else {
      environment.proposalsOpen.remove(key)
      environment.proposalDues.remove(due)
      // Another proposal about the target may have been opened in the same group.
      if (environment.proposalTargets.get(target)?.readUIntBE(0, 6) === row.seq) {
        environment.proposalTargets.remove(target)
      }
    }
    environment.proposals.put(key, Buffer.from(JSON.stringify(row)))
  }
}

/** When an open proposal ends by itself, by being applied or by expiring. */
export function dueAtMs({
  effectiveAtMs,
  expiresAtMs,
}: Pick<ProposalRow, 'effectiveAtMs' | 'expiresAtMs'>): number {
  return effectiveAtMs ?? expiresAtMs
}

const nothing = Buffer.alloc(0)

function targetKey(agentNo: number, target: string): Buffer {
  const key = Buffer.alloc(4 + Buffer.byteLength(target))
  key.writeUInt32BE(agentNo, 0)
  key.write(target, 4)
  return key
}

function seqValue(seq: number): Buffer {
  const value = Buffer.alloc(6)
  value.writeUIntBE(seq, 0, 6)
  return value
}
