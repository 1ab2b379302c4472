import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { CommandOf } from '../../protocol/messages.js'
import { auditAgent } from '../../strand/organism-id.js'
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
  pageLimit,
  reachableAgent,
  reachesStrand,
  writeOptions,
} from './parameters.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

/** GET /v1/proposals: the proposals of one agent, or of all. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/proposals',
  scope: 'proposals:decide',
  docs: {
    summary: 'Proposed mutations and their outcomes',
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

interface ListRequest extends Omit<CommandOf<'proposalList'>, 'kind'> {
  shard: number
}

async function listProposals(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const listRequest = readListRequest(request, context)
  return 'code' in listRequest ? listRequest : page(listRequest, context)
}

function readListRequest(request: RouteRequest, context: RouteContext): ListRequest | Refusal {
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const state = stateQuery(request)
  if (typeof state === 'object') return state
  const agent = agentQuery(request)
  if (typeof agent === 'object') return agent
  const listRequest: ListRequest = {
    limit,
    keys: reachesStrand(request.principal, auditAgent),
    shard: agent === undefined ? 0 : context.shardOf(agent),
    ...(state !== undefined && { state }),
    ...(agent !== undefined && { agent }),
  }
  const cursor = request.query.get('cursor')
  if (cursor === null) return listRequest
  const [shard, agentNo, seq] = decodeNumbers(cursor, 'proposals', 3) ?? []
  if (shard === undefined || agentNo === undefined || seq === undefined) return badCursor
  const ofOther = agent !== undefined && shard !== listRequest.shard
  const outside = shard >= context.shardCount || agentNo > AGENT_NO_MAX || seq > SEQ_MAX
  if (outside || ofOther) return badCursor
  // The seq counts from 1 in cursors: 0 means the beginning of a shard.
  return { ...listRequest, shard, ...(seq > 0 && { after: { agentNo, seq: seq - 1 } }) }
}

/** Agent numbers are u32, seqs are u48. */
const AGENT_NO_MAX = 2 ** 32 - 1
const SEQ_MAX = 2 ** 48 - 1

function stateQuery(request: RouteRequest): ProposalState | undefined | Refusal {
  const text = request.query.get('state')
  if (text === null) return undefined
  const state = proposalStates.find((known) => known === text)
  return state ?? faultyParameter('?state', `Expected one of ${proposalStates.join(', ')}`)
}

function agentQuery(request: RouteRequest): string | undefined | Refusal {
  const text = request.query.get('agent')
  if (text !== null) return reachableAgent(request, text)
  if (request.principal.agents.length === 0) return undefined
  return refuse('forbidden', 'This key is limited to agents: name one of them in ?agent=')
}

/** Reads one shard after another until the page is full or enough was read. */
async function page(listRequest: ListRequest, context: RouteContext): Promise<Answer | Refusal> {
  const rows: string[] = []
  let { shard, after } = listRequest
  const lastShard = listRequest.agent === undefined ? context.shardCount - 1 : shard
  while (shard <= lastShard) {
    const outcome = await context.requestShard(shard, {
      kind: 'proposalList',
      limit: listRequest.limit - rows.length,
      keys: listRequest.keys,
      ...(listRequest.agent !== undefined && { agent: listRequest.agent }),
      ...(listRequest.state !== undefined && { state: listRequest.state }),
      ...(after !== undefined && { after }),
    })
    if (outcome.kind !== 'proposals') return unexpected(outcome)
    rows.push(...outcome.rows)
    const { next } = outcome
    if (next !== undefined)
      return pageAnswer(rows, encodeCursor('proposals', [shard, next.agentNo, next.seq + 1]))
    shard++
    after = undefined
    if (rows.length >= listRequest.limit) break
  }
  return pageAnswer(rows, shard <= lastShard ? encodeCursor('proposals', [shard, 0, 0]) : null)
}

function pageAnswer(rows: readonly string[], cursor: string | null): Answer {
  return {
    status: 200,
    body: `{"proposals":[${rows.join(',')}],"next_cursor":${JSON.stringify(cursor)}}`,
  }
}

const summaries = {
  approve: 'Approve a proposal; if no more approvals are needed, it is applied immediately',
  reject: 'Reject a proposal, which ends it',
  cancel: 'Cancel a proposal; for its proposer, or a key with admin:*',
} as const

type VoteName = keyof typeof summaries

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
  const command = voteCommand(request, vote)
  if ('code' in command) return command
  const { agent, seq } = command
  if (vote !== 'approve') return answerOf(await context.request(agent, command))
  const authors = await context.request(agent, { kind: 'proposalAuthors', of: { agent, seq } })
  if (authors.kind !== 'authors') return unexpected(authors)
  const standings = await context.standings(authors.principals)
  if ('code' in standings) return standings
  const otherAdmins = context.apiKeys.hasAdmin()
  return answerOf(await context.request(agent, { ...command, standings, otherAdmins }))
}

function voteCommand(request: RouteRequest, vote: VoteName): CommandOf<'proposalDecide'> | Refusal {
  const parsed = parseProposalId(request.params[0] ?? '')
  if (parsed === undefined)
    return faultyParameter(':proposal_id', 'Expected a proposal_id of the form p_<seq>_<agent>')
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
