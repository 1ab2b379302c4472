import type { NucleotideRecord, ProposalView, ServiceClient } from '../../client/index.js'
import { msOf } from '../parts/format.js'
import type { Policy } from '../parts/rule-diff.js'
import type { ProposalList } from '../route.js'
import { reasonText } from '../parts/proposal-labels.js'

const PAGE_ROWS = 1_000
const PAGES_MAX = 20
const STEPS_OF_PAGE = 100

/** A list of proposals, newest first. */
export interface ReadList {
  proposals: ProposalView[]
  /** Whether there are more proposals than were read. */
  isCut: boolean
}

/** Reads a list of proposals, newest first; reads at most `most` proposals before filtering. */
export async function readList(
  service: ServiceClient,
  wanted: { list: ProposalList; principal: string; agent: string | undefined },
  { most, signal }: { most: number; signal: AbortSignal },
): Promise<ReadList> {
  const { list, principal, agent } = wanted
  const state = list === 'waiting' ? ('proposed' as const) : undefined
  const found: ReadList = { proposals: [], isCut: false }
  let count = 0
  for await (const one of service.proposals.listAll({ agent, state, limit: PAGE_ROWS, signal })) {
    count += 1
    if (count > most) {
      found.isCut = true
      break
    }
    const isShown =
      list === 'mine' ? one.proposer === principal : list === 'waiting' || one.state !== 'proposed'
    if (isShown) found.proposals.push(one)
  }
  found.proposals.sort((one, other) => timeOf(other) - timeOf(one))
  return found
}

function timeOf({ ended_at_ms: endedAtMs, created_at_ms: createdAtMs }: ProposalView): number {
  return endedAtMs ?? createdAtMs
}

/** Reads the proposal with an id; undefined if there is none. */
export async function readProposal(
  service: ServiceClient,
  id: string,
  signal: AbortSignal,
): Promise<ProposalView | undefined> {
  const { agent } = proposalOrigin(id)
  for await (const one of service.proposals.listAll({ agent, limit: PAGE_ROWS, signal }))
    if (one.proposal_id === id) return one
  return undefined
}

/** Parses the id of a proposal, `p_<seq>_<agent>`: the agent, and the seq of its first record. */
export function proposalOrigin(id: string): { agent: string; seq: number } {
  const [, seq, agent = ''] = /^p_([0-9]+)_(.*)$/.exec(id) ?? []
  return { agent, seq: Number(seq) }
}

interface SignedStep {
  seq: number
  ms: number
  text: string
  principal?: string
}

/**
 * Reads the later records of a proposal: votes, the change itself, and the end (docs/FORMAT.md, Proposals).
 */
export async function readSteps(
  service: ServiceClient,
  { proposal_id: id, created_at_ms: createdAtMs }: ProposalView,
  signal: AbortSignal,
): Promise<SignedStep[]> {
  const { agent, seq } = proposalOrigin(id)
  const steps: SignedStep[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await service.agent(agent).query(
      {
        type: 'time_range',
        from_ts: createdAtMs,
        types: ['sys/*', 'edge/remove'],
        where: [{ field: 'proposal_seq', op: 'eq', value: seq }],
        order: 'asc',
        limit: STEPS_OF_PAGE,
        ...(cursor !== undefined && { cursor }),
      },
      { signal },
    )
    steps.push(...page.records.map(stepOf))
    cursor = page.next_cursor ?? undefined
    if (cursor === undefined || page.records.some(({ type }) => type === 'sys/applied')) break
  }
  return steps
}

function stepOf({ seq, type, timestamp_hlc: hlc, payload }: NucleotideRecord): SignedStep {
  const step = { seq, ms: msOf(hlc), text: stepText(type, payload) }
  return type === 'sys/vote' ? { ...step, principal: String(payload['principal']) } : step
}

function stepText(type: string, body: Record<string, unknown>): string {
  if (type === 'sys/vote') return voteWords[String(body['vote'])] ?? 'Voted'
  if (type !== 'sys/applied') return `The change itself, ${type}`
  const reason = typeof body['reason'] === 'string' ? `: ${reasonText(body['reason'])}` : ''
  return `Ended as ${String(body['state'])}${reason}`
}

const voteWords: Record<string, string> = {
  approve: 'Approved',
  reject: 'Rejected',
  cancel: 'Withdrawn',
  withdrawn: 'Approval withdrawn, given',
}

/** Reads the rules before a proposal: those of the newest sys/policy record that is not its own. */
export async function readPoliciesBefore(
  service: ServiceClient,
  { proposal_id: id, ended_at_ms: endedAtMs }: ProposalView,
  signal: AbortSignal,
): Promise<Policy[]> {
  const { agent, seq } = proposalOrigin(id)
  const records = service.agent<{ policies: Policy[]; proposal_seq?: number }>(agent).queryAll(
    {
      type: 'time_range',
      ...(endedAtMs !== null && { to_ts: endedAtMs }),
      types: ['sys/policy'],
      order: 'desc',
      limit: 2,
    },
    { signal },
  )
  for await (const { payload } of records) if (payload.proposal_seq !== seq) return payload.policies
  return []
}
