import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { AgentCreate, NamesOutcome } from '../../protocol/agent-messages.js'
import type { Outcome } from '../../protocol/messages.js'
import { AgentCreateBody, AgentCreated, AgentPage, AgentStatus, ChainHead } from '../../wire/agents.js'
import { Cursor } from '../../wire/primitives.js'
import { answerOf, json, unexpected } from './answers.js'
import {
  agentRefusal,
  badCursor,
  decodeText,
  encodeCursor,
  faultyParameter,
  integerQuery,
  reachableAgent,
  reachesPrefix,
  withAccess,
  withBody,
  writeOptions,
} from './parameters.js'
import type { Answer, CommandRoute, HandlerRoute, RouteContext, RouteRequest } from './route.js'
import type { WriteOptions } from '../../protocol/command-options.js'
import { keyPairFromSeed } from '../../strand/keys.js'
import type { Zone } from '../../strand/zone.js'

/** Part of an agent name; a name in an organism has at most 258 characters. */
const namePart = /^[A-Za-z0-9_.:-]{0,258}$/

/** POST /v1/agents: creates a named agent. */
const create: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/agents',
  scope: 'agents:admin',
  errors: ['agent_exists', 'key_in_use'],
  docs: {
    summary: 'Create an agent',
    tag: 'Agents',
    request: AgentCreateBody,
    answers: { 201: AgentCreated },
    idempotent: true,
  },
  handle: withBody(AgentCreateBody, async (body, request, context) => {
    const { name, zone, seed_hex: seedHex } = body
    const options = writeOptions(request)
    if ('code' in options) return options
    const refusal = agentRefusal(request, name)
    if (refusal !== undefined) return refusal
    const claimed = await claimRequest(request, { options, realm: 'agents' }, context)
    if (typeof claimed !== 'string') return claimed
    return createAgent(context, { agent: name, zone, seedHex, options })
  }),
}

/** GET /v1/agents: the names of all agents, in order. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/agents',
  scope: 'records:read',
  docs: {
    summary: 'List agents',
    tag: 'Agents',
    query: {
      limit: Type.Integer({
        minimum: 1,
        maximum: limits.pageRowsMax,
        default: 100,
        description: `At most ${limits.agentStatusesMax} with include=status`,
      }),
      cursor: Cursor,
      prefix: Type.String({ description: 'Only names that start with this' }),
      contains: Type.String({
        description:
          'Only names that contain this, ignoring case. A page can then be shorter than its limit, or empty, and still ' +
          'have a cursor; total counts the names from the beginning of the page on, and not all if there is a cursor',
      }),
      include: Type.Enum(['status'], {
        description:
          'Also the status of each agent; a page can then be shorter than its limit and still have a cursor',
      }),
    },
    answers: { 200: AgentPage },
  },
  handle: listAgents,
}

async function listAgents(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const include = request.query.get('include')
  if (include !== null && include !== 'status') return faultyParameter('?include', 'Expected status')
  const max = include === null ? limits.pageRowsMax : limits.agentStatusesMax
  const limit = integerQuery(request, 'limit', { min: 1, max, fallback: 100 })
  if (typeof limit !== 'number') return limit
  const prefix = request.query.get('prefix') ?? ''
  // Prefix and cursor are used as keys of the store, which limits their length.
  if (!namePart.test(prefix)) return faultyParameter('?prefix', 'Expected the beginning of an agent name')
  const contains = request.query.get('contains') ?? ''
  if (!namePart.test(contains)) return faultyParameter('?contains', 'Expected a part of an agent name')
  const cursor = request.query.get('cursor')
  const after = cursor === null ? '' : decodeText(cursor, 'agents')
  if (after === undefined || !namePart.test(after)) return badCursor
  if (!reachesPrefix(request.principal.agents, prefix)) {
    return refuse('forbidden', 'This key does not reach all agents with this prefix: use a longer prefix')
  }
  const options = {
    ...(contains !== '' && { contains }),
    ...(include !== null && ({ statuses: true } as const)),
  }
  const outcomes = await context.requestAll({ kind: 'agentList', prefix, after, limit, ...options })
  const pages: NamesOutcome[] = []
  for (const outcome of outcomes) {
    if (outcome.kind !== 'names') return answerOf(outcome)
    pages.push(outcome)
  }
  return agentPage(pages, { prefix, limit, withStatus: include !== null })
}

/** Merges the pages of all shards into one. */
function agentPage(
  pages: readonly NamesOutcome[],
  { prefix, limit, withStatus }: { prefix: string; limit: number; withStatus: boolean },
): Answer {
  // After the last name that a shard with an incomplete page has examined, names may be missing.
  const [end] = pages.flatMap(({ cut }) => (cut === undefined ? [] : [cut])).toSorted(inOrder)
  const rows = pages
    .flatMap(({ names, statuses }) => names.map((name, at) => ({ name, status: statuses?.[at] ?? '' })))
    .filter(({ name }) => end === undefined || name <= end)
    .sort((left, right) => inOrder(left.name, right.name))
  const shown = rows.slice(0, limit)
  const names = shown.map(({ name }) => name)
  const isFull = rows.length > limit || pages.some(({ names: page }) => page.length === limit)
  const last = rows.length > limit || end === undefined ? names.at(-1) : end
  const count = pages.reduce((sum, page) => sum + page.total, 0)
  const total = prefix === '' ? count : Math.min(count, limits.countedRowsMax)
  const next = (isFull || end !== undefined) && last !== undefined ? encodeCursor('agents', [last]) : null
  if (!withStatus) return json(200, { agents: names, total, next_cursor: next })
  const statuses = shown.map(({ status: text }) => text).join(',')
  const body = `{"agents":${JSON.stringify(names)},"statuses":[${statuses}],"total":${total},"next_cursor":${JSON.stringify(next)}}`
  return { status: 200, body }
}

/** The order of UTF-8 bytes, like the order of the keys in the shards; names are ASCII. */
function inOrder(left: string, right: string): -1 | 1 {
  return left < right ? -1 : 1
}

const status: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/status',
  scope: 'records:read',
  users: true,
  docs: { summary: 'Record count, chain head and zone', tag: 'Agents', answers: { 200: AgentStatus } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return { agent, command: withAccess(request, { kind: 'agentStatus', agent }) }
  },
}

const head: CommandRoute = {
  kind: 'command',
  method: 'get',
  path: '/v1/agents/:agent/head',
  scope: 'records:read',
  users: true,
  docs: { summary: 'The chain head', tag: 'Agents', answers: { 200: ChainHead } },
  toCommand(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return { agent, command: withAccess(request, { kind: 'agentHead', agent }) }
  },
  toBody: withEntityTag,
}

/** Adds the chain head as ETag, because If-Match uses it. */
function withEntityTag(outcome: Outcome): Answer | Refusal {
  if (outcome.kind !== 'reply') return unexpected(outcome)
  const hash = /"chain_head":"([0-9a-f]{64})"/.exec(outcome.body)?.[1] ?? ''
  return { status: outcome.status, body: outcome.body, headers: [['ETag', `"${hash}"`]] }
}

export const agentRoutes = [create, list, status, head]

/* Shared by the routes that create agents: those of agents and those of organisms. */

interface AgentRequest {
  agent: string
  zone: Zone
  /** Its Ed25519 seed, 64 hex digits; by default derived from the master seed. */
  seedHex?: string | undefined
  options: WriteOptions
}

/** Creates an agent and answers as POST /v1/agents does; 409 agent_exists, key_in_use. */
export async function createAgent(
  context: RouteContext,
  { agent, zone, seedHex, options }: AgentRequest,
): Promise<Answer | Refusal> {
  const command: AgentCreate = { kind: 'agentCreate', agent, zone, options }
  if (seedHex !== undefined) {
    command.seed = Buffer.from(seedHex, 'hex')
    // Keys can belong to another shard than agents, so the key is claimed first; a claim without its agent
    // does no harm.
    const { publicKey } = keyPairFromSeed(command.seed)
    const existing = await context.request(agent, { kind: 'agentHead', agent })
    const claims = 'code' in existing && existing.code === 'agent_not_found'
    if (claims) {
      const claim = await context.request(publicKey, { kind: 'keyClaim', publicKey, agent })
      if (claim.kind !== 'done') return answerOf(claim)
    }
  }
  return answerOf(await context.request(agent, command))
}

/**
 * Binds the Idempotency-Key of a request to its body. Idempotency keys otherwise belong to agents, so the
 * same key for an agent of another name would be a different request.
 * @param realm scope of the key: requests in different realms can use the same key
 * @returns 24 random hex digits, the same for each repetition of the request; empty without a key; 422
 * idempotency_key_reused
 */
export async function claimRequest(
  { body }: RouteRequest,
  { options: { idempotency }, realm }: { options: WriteOptions; realm: string },
  context: RouteContext,
): Promise<string | Refusal> {
  if (idempotency === undefined) return ''
  const agent = `${realm}\n${idempotency.key}`
  const outcome = await context.request(agent, {
    kind: 'requestClaim',
    agent,
    body,
    options: { idempotency },
  })
  return outcome.kind === 'claimed' ? outcome.drawn : unexpected(outcome)
}
