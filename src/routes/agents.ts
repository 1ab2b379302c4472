import { Type } from 'typebox'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Outcome } from '../protocol/messages.js'
import { AgentCreateBody, AgentCreated, AgentPage, AgentStatus, ChainHead } from '../wire/agents.js'
import { Cursor } from '../wire/primitives.js'
import { reader } from '../wire/validate.js'
import { claimRequest, createAgent } from './agent-creation.js'
import { answerOf, json, unexpected } from './answers.js'
import {
  agentRefusal,
  badCursor,
  decodeText,
  encodeCursor,
  faultyParameter,
  pageLimit,
  reachableAgent,
  reachesPrefix,
  withAccess,
  writeOptions,
} from './parameters.js'
import type { Answer, CommandRoute, HandlerRoute, RouteContext, RouteRequest } from './route.js'

const createBody = reader(AgentCreateBody)

/** What a name can begin with: one of an organism has at most 258 characters. */
const namePrefix = /^[A-Za-z0-9_.:-]{0,258}$/

/** POST /v1/agents: makes a named agent. */
const create: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/agents',
  scope: 'agents:admin',
  bodyBytesMax: limits.requestBytesMax,
  errors: ['agent_exists', 'key_in_use'],
  docs: {
    summary: 'Create an agent',
    tag: 'Agents',
    request: AgentCreateBody,
    answers: { 201: AgentCreated },
    idempotent: true,
  },
  async handle(request, context) {
    const body = createBody.bytes(request.body)
    if ('code' in body) return body
    const { name, zone, seed_hex: seedHex } = body.value
    const options = writeOptions(request)
    if ('code' in options) return options
    const refusal = agentRefusal(request, name)
    if (refusal !== undefined) return refusal
    const claimed = await claimRequest(request, { options, realm: 'agents' }, context)
    if (typeof claimed !== 'string') return claimed
    return createAgent(context, { agent: name, zone, seedHex, options })
  },
}

/** GET /v1/agents: the names of all agents, in order. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/agents',
  scope: 'records:read',
  bodyBytesMax: 0,
  errors: [],
  docs: {
    summary: 'List agents',
    tag: 'Agents',
    query: {
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
      cursor: Cursor,
      prefix: Type.String({ description: 'Only names that begin with it' }),
    },
    answers: { 200: AgentPage },
  },
  handle: listAgents,
}

async function listAgents(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const prefix = request.query.get('prefix') ?? ''
  // Both become keys of the store, which have a bound on their length.
  if (!namePrefix.test(prefix)) return faultyParameter('?prefix', 'Expected the beginning of an agent name')
  const cursor = request.query.get('cursor')
  const after = cursor === null ? '' : decodeText(cursor)
  if (after === undefined || !namePrefix.test(after)) return badCursor
  if (!reachesPrefix(request.principal.agents, prefix)) {
    return refuse('forbidden', 'Expected a prefix that the key reaches')
  }
  const outcomes = await context.askAll({ kind: 'agentList', prefix, after, limit })
  const names: string[] = []
  let total = 0
  for (const outcome of outcomes) {
    if (outcome.kind !== 'names') return answerOf(outcome)
    names.push(...outcome.names)
    total += outcome.total
  }
  // The order of UTF-8 bytes, which is the order of the shards' keys; names are ASCII.
  names.sort((left, right) => (left < right ? -1 : 1))
  const agents = names.slice(0, limit)
  const last = agents.at(-1)
  const more =
    names.length > limit || outcomes.some((one) => one.kind === 'names' && one.names.length === limit)
  return json(200, { agents, total, next_cursor: more && last !== undefined ? encodeCursor([last]) : null })
}

/** GET /v1/agents/:agent/status */
const status: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/status',
  scope: 'records:read',
  users: true,
  bodyBytesMax: 0,
  errors: [],
  docs: { summary: 'Record count, chain head and zone', tag: 'Agents', answers: { 200: AgentStatus } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return { agent, command: withAccess(request, { kind: 'agentStatus', agent }) }
  },
}

/** GET /v1/agents/:agent/head */
const head: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/head',
  scope: 'records:read',
  users: true,
  bodyBytesMax: 0,
  errors: [],
  docs: { summary: 'The chain head', tag: 'Agents', answers: { 200: ChainHead } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return { agent, command: withAccess(request, { kind: 'agentHead', agent }) }
  },
  toBody: withEntityTag,
}

/** The chain head is what If-Match takes, so it stands in the answer's ETag. */
function withEntityTag(outcome: Outcome): Answer | Refusal {
  if (outcome.kind !== 'reply') return unexpected(outcome)
  const hash = /"chain_head":"([0-9a-f]{64})"/.exec(outcome.body)?.[1] ?? ''
  return { status: outcome.status, body: outcome.body, headers: [['ETag', `"${hash}"`]] }
}

export const agentRoutes = [create, list, status, head]
