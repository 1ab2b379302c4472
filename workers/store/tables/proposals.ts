import type { ProposalCursor, ProposalRow } from '../../../src/protocol/proposal-messages.js'
import { assert } from '../../../src/base/assert.js'
import { fields, isNumber } from '../../../src/base/shape.js'
import type { Environment } from '../environment.js'
import { byAgentAt, byAgentInKey } from '../row-move.js'
import { differs, invalidRows } from '../row-faults.js'
import type { TableSpec } from '../table-spec.js'
import { proposalOf, type ScannedProposal, storedProposal } from './past-proposals.js'
import { InvalidRow } from './row-shape.js'
import { expiryKey, jsonOf, runKey, seqMax } from './tables.js'

const isImporting = fields({ no: isNumber, importing: (value): value is true => value === true })

/** A proposal to write, with the number of its agent. */
export interface PendingProposal {
  agentNo: number
  row: ProposalRow
}

/** The properties of an open proposal by which quotas are counted. */
export interface OpenShare {
  /** Key lineage of the proposer. */
  line: string
  erases: boolean
}

/** Key of a proposal: the number of its agent u32, the seq of its record u48. */
export const proposalKey = runKey

/**
 * The target of a proposal: a record, an edge, a property of the agent, or a key. Each target has at most one
 * open proposal, which is found by it.
 */
export function proposalTarget({ mutation }: Pick<ProposalRow, 'mutation'>): string {
  // Edge types contain no space.
  if (mutation.action === 'remove_edge') return `edge:${mutation.edgeType} ${mutation.dst}`
  if (mutation.action === 'make_api_key') return `key:${mutation.keyId}`
  return 'target' in mutation ? `record:${mutation.target}` : mutation.action
}

/** A proposal, from its row or from its records; `undefined` if there is none. */
export function findProposal(environment: Environment, place: ScannedProposal): ProposalRow | undefined {
  const value = environment.proposals.find(proposalKey(place.agentNo, place.seq))
  return value === undefined ? undefined : proposalOf(environment, place, value)
}

/** The seq of the open proposal about a target; `undefined` if there is none. */
export function openProposalAbout(
  environment: Environment,
  agentNo: number,
  target: string,
): number | undefined {
  return environment.proposalTargets.get(targetKey(agentNo, target))?.readUIntBE(0, 6)
}

/** Agent number and seq of the proposals after `after`, in order; of open ones, or of all. */
export function* proposalPlaces(
  environment: Environment,
  { after, open, agentNo }: { after?: ProposalCursor; open: boolean; agentNo?: number },
): Generator<ProposalCursor> {
  // A caller chooses its cursor, so it must not lead out of the agent.
  const first = agentNo ?? after?.agentNo ?? 0
  const start = proposalKey(first, after === undefined ? 0 : after.seq + 1)
  const end = agentNo === undefined ? undefined : proposalKey(agentNo + 1, 0)
  const table = open ? environment.proposalsOpen : environment.proposals
  for (const key of table.getKeys({ start, ...(end !== undefined && { end }) })) {
    yield { agentNo: key.readUInt32BE(0), seq: key.readUIntBE(4, 6) }
  }
}

/**
 * Agent number and seq of the open proposals that are due, oldest first.
 * @param skips whether a proposal is left out
 */
export function dueProposals(
  environment: Environment,
  { nowMs, limit, skips }: { nowMs: number; limit: number; skips: (place: ProposalCursor) => boolean },
): ProposalCursor[] {
  // The end key has no proposal, so it sorts before all keys of its millisecond.
  const range = { start: expiryKey(0, Buffer.alloc(0)), end: expiryKey(nowMs + 1, Buffer.alloc(0)) }
  const due: ProposalCursor[] = []
  for (const key of environment.proposalDues.getKeys(range)) {
    if (due.length >= limit) break
    const place = { agentNo: key.readUInt32BE(6), seq: key.readUIntBE(10, 6) }
    if (!skips(place)) due.push(place)
  }
  return due
}

/** The number of open proposals of an agent. */
export function openProposalCount(environment: Environment, agentNo: number): number {
  return environment.proposalsOpen.getKeysCount({
    start: proposalKey(agentNo, 0),
    end: proposalKey(agentNo, seqMax),
  })
}

/** New states of proposals, by agent number and seq. */
export const proposals: TableSpec<Environment, Map<string, PendingProposal>> = {
  open: (environment) => environment,
  moves: {
    proposals: byAgentInKey,
    proposalsOpen: byAgentInKey,
    proposalTargets: byAgentInKey,
    // The number comes after the due time in the key.
    proposalDues: byAgentAt({ key: 6 }),
  },
  *faults(environment) {
    const { proposals: table, proposalsOpen, proposalTargets, proposalDues } = environment
    yield* invalidRows(table, (key, value) => {
      if (storedProposal(value) === undefined) throw new InvalidRow(`proposals ${key.toString('hex')}`)
    })
    yield* differs(['targets of proposals', proposalTargets], ['open proposals', proposalsOpen])
    const open = proposalsOpen.getKeysCount({}) - heldProposals(environment)
    const dues = proposalDues.getKeysCount({})
    if (dues !== open) yield `There are ${dues} due times of proposals and ${open} open proposals`
  },
  changes: () => new Map(),
  rows: ({ size }) => size,
  put: (environment, changes) => putProposals(environment, changes.values()),
}

/**
 * Open proposals of agents whose import has not ended, which an earlier version has imported: they have no
 * due time.
 */
function heldProposals(environment: Environment): number {
  let held = 0
  for (const { value } of environment.agents.getRange({})) {
    const row = jsonOf(value)
    if (isImporting(row)) held += openProposalCount(environment, row.no)
  }
  return held
}

/** Writes proposals and their indexes. */
function putProposals(environment: Environment, pending: Iterable<PendingProposal>): void {
  for (const { agentNo, row } of pending) {
    assert(row.state !== 'approved', 'an approved proposal is applied in the same transaction')
    const key = proposalKey(agentNo, row.seq)
    const target = targetKey(agentNo, proposalTarget(row))
    const due = expiryKey(dueAtMs(row), key)
    if (row.state === 'proposed') {
      environment.proposalsOpen.put(key, nothing)
      environment.proposalTargets.put(target, seqValue(row.seq))
      environment.proposalDues.put(due, nothing)
    } else {
      environment.proposalsOpen.remove(key)
      environment.proposalDues.remove(due)
      // Another proposal about the target may have been opened in the same group.
      if (environment.proposalTargets.get(target)?.equals(seqValue(row.seq)) === true) {
        environment.proposalTargets.remove(target)
      }
    }
    environment.proposals.put(key, Buffer.from(JSON.stringify(row)))
  }
}

/** When an open proposal is applied automatically or expires, Unix milliseconds. */
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
