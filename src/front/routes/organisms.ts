import { Type } from 'typebox'
import { isOrganismId, memberAddress } from '../../auth/namespace.js'
import { refuse, type Fault, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { authMember, isReservedOrganismId, memberSeparator } from '../../strand/organism-id.js'
import type { OrganismMember, OrganismOutcome } from '../../protocol/organism-messages.js'
import { AgentCreateBody, AgentCreated } from '../../wire/agents.js'
import { OrganismCreateBody, OrganismCreated, OrganismPage, OrganismView } from '../../wire/organisms.js'
import { Cursor } from '../../wire/primitives.js'
import { reader } from '../../wire/validate.js'
import { claimRequest, createAgent } from './agents.js'
import { answerOf, json, unexpected } from './answers.js'
import {
  agentRefusal,
  badCursor,
  decodeText,
  encodeCursor,
  pageLimit,
  reachesPrefix,
  withBody,
  writeOptions,
} from './parameters.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

const memberBody = reader(AgentCreateBody)

const GENERATED_ID_PREFIX = 'org_'
const GENERATED_ID_BYTES = 12

/**
 * POST /v1/organisms: creates the row first, then the agents, each on its own shard. If a crash interrupts
 * this, repeating the request with its Idempotency-Key completes it.
 */
const create: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/organisms',
  scope: 'admin:organisms',
  errors: ['organism_exists'],
  docs: {
    summary: 'Create an organism, with agents',
    tag: 'Organisms',
    request: OrganismCreateBody,
    answers: { 201: OrganismCreated },
    idempotent: true,
  },
  handle: withBody(OrganismCreateBody, async (body, request, context) => {
    const { organism_id: givenId, name, agents: members = [] } = body
    const options = writeOptions(request)
    if ('code' in options) return options
    const refusal =
      reservedRefusal(givenId) ??
      membersRefusal(members) ??
      reachRefusal(request, givenId === undefined ? GENERATED_ID_PREFIX : givenId + memberSeparator)
    if (refusal !== undefined) return refusal
    const randomId = await claimRequest(request, { options, realm: 'organisms' }, context)
    if (typeof randomId !== 'string') return randomId
    const organismId = givenId ?? `${GENERATED_ID_PREFIX}${randomId || randomHex(context)}`
    const agent = rowAgentOf(organismId)
    const outcome = await context.request(agent, {
      kind: 'organismCreate',
      agent,
      organismId,
      name,
      members,
      options,
    })
    if (outcome.kind !== 'reply') return unexpected(outcome)
    return (await createMembers(context, organismId, members)) ?? answerOf(outcome)
  }),
}

/** 400 for an id that is a reserved word of JavaScript or of this server. */
function reservedRefusal(organismId: string | undefined): Refusal | undefined {
  if (organismId === undefined || !isReservedOrganismId(organismId)) return undefined
  const detail = `Expected an organism_id that is not a reserved word, got "${organismId}"`
  return refuse('validation_failed', detail, {
    faults: [{ pointer: '/organism_id', code: 'validation_failed', detail }],
  })
}

/**
 * Creates the agents that do not exist yet. They are listed in the row, so no other request has created them.
 */
async function createMembers(
  context: RouteContext,
  organismId: string,
  members: readonly OrganismMember[],
): Promise<Refusal | undefined> {
  const outcomes = await Promise.all(
    members.map(({ name, zone }) => {
      const agent = memberAddress(organismId, name)
      return context.request(agent, { kind: 'agentCreate', agent, zone, isMember: true, options: {} })
    }),
  )
  const refusals = outcomes.flatMap((outcome) => ('code' in outcome ? [outcome] : []))
  return refusals.find(({ code }) => code !== 'agent_exists')
}

/** POST /v1/organisms/:organism_id/agents: creates an agent of an organism. */
const createMember: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/organisms/:organism_id/agents',
  scope: 'admin:organisms',
  errors: ['agent_exists', 'key_in_use'],
  docs: {
    summary: 'Create an agent of an organism',
    tag: 'Organisms',
    request: AgentCreateBody,
    answers: { 201: AgentCreated },
    idempotent: true,
  },
  async handle(request, context) {
    const organismId = organismParameter(request)
    if (typeof organismId !== 'string') return organismId
    const body = memberBody.bytes(request.body)
    if ('code' in body) return body
    const { name, zone, seed_hex: seedHex } = body.value
    const options = writeOptions(request)
    if ('code' in options) return options
    if (name === authMember) return memberRefusal([reservedAt('/name')])
    const agent = memberAddress(organismId, name)
    const refusal = agentRefusal(request, agent)
    if (refusal !== undefined) return refusal
    const organism = await organismOf(context, organismId)
    if ('code' in organism) return organism
    const claimed = await claimRequest(request, { options, realm: `organisms\n${organismId}` }, context)
    if (typeof claimed !== 'string') return claimed
    return createAgent(context, { agent, zone, seedHex, options })
  },
}

const show: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/organisms/:organism_id',
  scope: 'admin:organisms',
  docs: { summary: 'An organism and its agents', tag: 'Organisms', answers: { 200: OrganismView } },
  async handle(request, context) {
    const organismId = organismParameter(request)
    if (typeof organismId !== 'string') return organismId
    const prefix = organismId + memberSeparator
    const refusal = reachRefusal(request, prefix)
    if (refusal !== undefined) return refusal
    const organism = await organismOf(context, organismId)
    if ('code' in organism) return organism
    const agents = await membersOf(context, prefix)
    if ('code' in agents) return agents
    const { row, initialised } = organism
    const view: OrganismView = {
      organism_id: organismId,
      name: row.name,
      ...agents,
      auth: initialised,
      created_at_ms: row.createdAtMs,
    }
    return json(200, view)
  },
}

async function membersOf(
  context: RouteContext,
  prefix: string,
): Promise<Pick<OrganismView, 'agents' | 'agent_count'> | Refusal> {
  const limit = limits.pageRowsMax
  const outcomes = await context.requestAll({ kind: 'agentList', prefix, after: '', limit })
  const names: string[] = []
  let count = 0
  for (const outcome of outcomes) {
    if (outcome.kind !== 'names') return unexpected(outcome)
    names.push(...outcome.names)
    count += outcome.total
  }
  return { agents: names.sort().slice(0, limit), agent_count: Math.min(count, limits.countedRowsMax) }
}

/** GET /v1/organisms: all organisms, ordered by id. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/organisms',
  scope: 'admin:organisms',
  docs: {
    summary: 'List organisms',
    tag: 'Organisms',
    query: {
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
      cursor: Cursor,
    },
    answers: { 200: OrganismPage },
  },
  handle: listOrganisms,
}

async function listOrganisms(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const refusal = reachRefusal(request, '')
  if (refusal !== undefined) return refusal
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const cursor = request.query.get('cursor')
  const after = cursor === null ? '' : decodeText(cursor, 'organisms')
  if (after === undefined || (after !== '' && !isOrganismId(after))) return badCursor
  const rows: OrganismPage['organisms'] = []
  let total = 0
  for (const outcome of await context.requestAll({ kind: 'organismList', after, limit: limit + 1 })) {
    if (outcome.kind !== 'organisms') return unexpected(outcome)
    total += outcome.total
    for (const { organismId, name, createdAtMs } of outcome.rows) {
      rows.push({ organism_id: organismId, name, created_at_ms: createdAtMs })
    }
  }
  // Ids are ASCII, so this is the order of the keys in the shards.
  rows.sort((left, right) => (left.organism_id < right.organism_id ? -1 : 1))
  const organisms = rows.slice(0, limit)
  const last = organisms.at(-1)
  const more = rows.length > limit && last !== undefined
  const page: OrganismPage = {
    organisms,
    total,
    next_cursor: more ? encodeCursor('organisms', [last.organism_id]) : null,
  }
  return json(200, page)
}

/** The organism id of the path; 404 if it is invalid. */
function organismParameter({ params }: RouteRequest): string | Refusal {
  const [organismId = ''] = params
  if (isOrganismId(organismId)) return organismId
  return refuse('organism_not_found', 'Organism not found: the path has no valid organism id')
}

async function organismOf(context: RouteContext, organismId: string): Promise<OrganismOutcome | Refusal> {
  const agent = rowAgentOf(organismId)
  const outcome = await context.request(agent, { kind: 'organismGet', agent, organismId })
  return outcome.kind === 'organism' ? outcome : unexpected(outcome)
}

/** The agent whose shard stores the row of the organism. */
function rowAgentOf(organismId: string): string {
  return memberAddress(organismId, authMember)
}

/** 403 for a key that does not reach all agents whose names begin with `prefix`. */
function reachRefusal({ principal }: RouteRequest, prefix: string): Refusal | undefined {
  if (reachesPrefix(principal.agents, prefix)) return undefined
  return refuse('forbidden', `This key does not reach every agent of "${prefix}*"`)
}

/** 400 for reserved or repeated names. */
function membersRefusal(members: readonly OrganismMember[]): Refusal | undefined {
  const seen = new Set<string>()
  const faults: Fault[] = []
  for (const [index, { name }] of members.entries()) {
    const pointer = `/agents/${index}/name`
    if (name === authMember) faults.push(reservedAt(pointer))
    if (seen.has(name)) {
      faults.push({ pointer, code: 'validation_failed', detail: 'Expected each name once' })
    }
    seen.add(name)
  }
  return faults.length === 0 ? undefined : memberRefusal(faults)
}

function reservedAt(pointer: string): Fault {
  const detail = `The name "${authMember}" is reserved for the auth namespace`
  return { pointer, code: 'validation_failed', detail }
}

function memberRefusal(faults: Fault[]): Refusal {
  return refuse('validation_failed', faults[0]?.detail ?? 'Expected other agents', { faults })
}

function randomHex({ random }: RouteContext): string {
  return Buffer.from(random(GENERATED_ID_BYTES)).toString('hex')
}

export const organismRoutes = [create, createMember, show, list]
