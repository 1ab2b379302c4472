import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { CommandOf } from '../../protocol/messages.js'
import type { ProposalPlace } from '../../protocol/proposal-messages.js'
import { parseProposalId, proposalStates, type ProposalState } from '../../strand/proposal.js'
import { AgentAddress, Cursor } from '../../wire/primitives.js'
import { ProposalPage, ProposalStateName, ProposalView } from '../../wire/proposals.js'
import { answerOf, unexpected } from './answers.js'
import {
  authorOf,
  badCursor,
  decodeNumbers,
  encodeCursor,
  faultyParameter,
  isUnlimitedAdmin,
  pageLimit,
  reachableAgent,
  writeOptions,
} from './parameters.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

/** GET /v1/proposals: those of one agent, or of all. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/proposals',
  scope: 'proposals:decide',
  docs: {
    summary: 'Proposed mutations, and what became of them',
    tag: 'Proposals',
    query: {
      agent: AgentAddress,
      state: ProposalStateName,
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
      cursor: Cursor,
    },
    answers: { 200: ProposalPage },
  },
  handle: listProposals,
}

/** What a list asks for. */
interface ListRequest {
  agent?: string
  state?: ProposalState
  limit: number
  /** Whether proposals about API keys are shown. */
  keys: boolean
  shard: number
  after?: ProposalPlace
}

async function listProposals(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const asked = readListRequest(request, context)
  return 'code' in asked ? asked : page(asked, context)
}

function readListRequest(request: RouteRequest, context: RouteContext): ListRequest | Refusal {
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const state = stateQuery(request)
  if (typeof state === 'object') return state
  const agent = agentQuery(request)
  if (typeof agent === 'object') return agent
  const asked: ListRequest = {
    limit,
    keys: isUnlimitedAdmin(request.principal),
    shard: agent === undefined ? 0 : context.shardOf(agent),
    ...(state !== undefined && { state }),
    ...(agent !== undefined && { agent }),
  }
  const cursor = request.query.get('cursor')
  if (cursor === null) return asked
  const [shard, agentNo, seq] = decodeNumbers(cursor, 3) ?? []
  if (shard === undefined || agentNo === undefined || seq === undefined) return badCursor
  const ofOther = agent !== undefined && shard !== asked.shard
  const outside = shard >= context.shardCount || agentNo > AGENT_NO_MAX || seq > SEQ_MAX
  if (outside || ofOther) return badCursor
  // The seq counts from 1 here: 0 stands for the beginning of a shard.
  return { ...asked, shard, ...(seq > 0 && { after: { agentNo, seq: seq - 1 } }) }
}

/** Agents of a shard are numbered by u32, seqs by u48. */
const AGENT_NO_MAX = 2 ** 32 - 1
const SEQ_MAX = 2 ** 48 - 1

function stateQuery(request: RouteRequest): ProposalState | undefined | Refusal {
  const text = request.query.get('state')
  if (text === null) return undefined
  const state = proposalStates.find((one) => one === text)
  return state ?? faultyParameter('?state', `Expected one of ${proposalStates.join(', ')}`)
}

function agentQuery(request: RouteRequest): string | undefined | Refusal {
  const text = request.query.get('agent')
  if (text !== null) return reachableAgent(request, text)
  if (request.principal.agents.length === 0) return undefined
  return refuse('forbidden', 'Expected ?agent= to name an agent that the key reaches')
}

/** Goes from shard to shard until the page is full, or enough was looked at. */
async function page(asked: ListRequest, context: RouteContext): Promise<Answer | Refusal> {
  const rows: string[] = []
  let { shard, after } = asked
  const lastShard = asked.agent === undefined ? context.shardCount - 1 : shard
  while (shard <= lastShard) {
    const outcome = await context.askShard(shard, {
      kind: 'proposalList',
      limit: asked.limit - rows.length,
      keys: asked.keys,
      ...(asked.agent !== undefined && { agent: asked.agent }),
      ...(asked.state !== undefined && { state: asked.state }),
      ...(after !== undefined && { after }),
    })
    if (outcome.kind !== 'proposals') return unexpected(outcome)
    rows.push(...outcome.rows)
    const { next } = outcome
    if (next !== undefined) return pageAnswer(rows, encodeCursor([shard, next.agentNo, next.seq + 1]))
    shard++
    after = undefined
    if (rows.length >= asked.limit) break
  }
  return pageAnswer(rows, shard <= lastShard ? encodeCursor([shard, 0, 0]) : null)
}

function pageAnswer(rows: readonly string[], cursor: string | null): Answer {
  return {
    status: 200,
    body: `{"proposals":[${rows.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`,
  }
}

const summaries = {
  approve: 'Approve a proposal; where that suffices it is applied at once',
  reject: 'Reject a proposal, which ends it',
  cancel: 'Take a proposal back: its proposer, or a key with admin:*',
} as const

type VoteName = keyof typeof summaries

/** POST /v1/proposals/:id/approve, /reject, /cancel */
function voteRoute(vote: VoteName): HandlerRoute {
  const anyProposer = {
    scope: 'records:delete',
    orScopes: ['records:erase', 'agents:admin'],
    users: true,
  } as const
  return {
    kind: 'handler',
    method: 'post',
    path: `/v1/proposals/:proposal_id/${vote}`,
    ...(vote === 'cancel' ? anyProposer : { scope: 'proposals:decide' }),
    bodyBytesMax: 1_024,
    errors: ['proposal_not_found', 'proposal_closed', 'already_voted', 'import_open'],
    docs: { summary: summaries[vote], tag: 'Proposals', answers: { 200: ProposalView }, idempotent: true },
    handle: (request, context) => takeVote(request, context, vote),
  }
}

async function takeVote(
  request: RouteRequest,
  context: RouteContext,
  vote: VoteName,
): Promise<Answer | Refusal> {
  const asked = voteCommand(request, vote)
  if ('code' in asked) return asked
  const { agent, seq } = asked
  if (vote !== 'approve') return answerOf(await context.ask(agent, asked))
  const authors = await context.ask(agent, { kind: 'proposalAuthors', of: { agent, seq } })
  if (authors.kind !== 'authors') return unexpected(authors)
  const standings = await context.standings(authors.principals)
  if ('code' in standings) return standings
  const otherAdmins = context.apiKeys.hasAdmin()
  return answerOf(await context.ask(agent, { ...asked, standings, otherAdmins }))
}

function voteCommand(request: RouteRequest, vote: VoteName): CommandOf<'proposalDecide'> | Refusal {
  const parsed = parseProposalId(request.params[0] ?? '')
  if (parsed === undefined)
    return faultyParameter(':proposal_id', 'Expected the proposal_id of a proposal: p_<seq>_<agent>')
  const agent = reachableAgent(request, parsed.agent)
  if (typeof agent !== 'string') return agent
  const options = writeOptions(request)
  if ('code' in options) return options
  const { scopes, key } = request.principal
  const decide = { kind: 'proposalDecide', agent, seq: parsed.seq, vote, options } as const
  const voter = {
    ...authorOf(request),
    admin: scopes.has('admin:*'),
    ...(key !== undefined && { keyMadeAtMs: key.row.createdAtMs }),
  }
  return { ...decide, ...voter }
}

export const proposalRoutes = [list, voteRoute('approve'), voteRoute('reject'), voteRoute('cancel')]
