import { Type } from 'typebox'
import type { Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { EdgeCursor, EdgeRow } from '../../protocol/graph-messages.js'
import {
  EdgeAdded,
  EdgeBody,
  EdgePage,
  EdgeRemoved,
  EdgeType,
  edgeTypePattern,
  TraversalResult,
  type GraphEdge,
} from '../../wire/graph.js'
import { AgentAddress, Cursor } from '../../wire/primitives.js'
import { Proposed } from '../../wire/proposals.js'
import { reader } from '../../wire/validate.js'
import { answerOf, json, unexpected } from './answers.js'
import { edgePage } from './graph/page.js'
import { traverse } from './graph/traverse.js'
import {
  agentParameter,
  agentRefusal,
  authorOf,
  badCursor,
  decodeTexts,
  encodeCursor,
  faultyParameter,
  integerQuery,
  momentParameter,
  pageLimit,
  reachableAgent,
  writeOptions,
} from './parameters.js'
import type {
  AddressedCommand,
  Answer,
  CommandRoute,
  HandlerRoute,
  RouteContext,
  RouteRequest,
} from './route.js'

const edgeBody = reader(EdgeBody)
const wholeEdgeType = new RegExp(edgeTypePattern)

const filters = {
  edge_type: EdgeType,
  as_of: Type.String({
    description:
      'The edges as of this time: ISO 8601, Unix milliseconds (0 or from 100000000000 up) or an HLC',
  }),
}

/**
 * POST /v1/graph/edges: adds a signed record to the strand of `src`; repeated, it changes the weight of the
 * edge.
 */
const add: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/graph/edges',
  scope: 'records:write',
  errors: ['agent_not_found', 'import_open'],
  docs: {
    summary: 'Add an edge, or change its weight',
    tag: 'Graph',
    request: EdgeBody,
    answers: { 201: EdgeAdded },
    idempotent: true,
    ifMatch: true,
  },
  handle: addEdge,
}

async function addEdge(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const body = edgeBody.bytes(request.body)
  if ('code' in body) return body
  const { src, dst, edge_type: edgeType, weight = 1 } = body.value
  const options = writeOptions(request)
  if ('code' in options) return options
  const refusal = agentRefusal(request, src) ?? agentRefusal(request, dst)
  if (refusal !== undefined) return refusal
  // Agents are never removed, so `dst` still exists when the edge is written.
  const end = await context.request(dst, { kind: 'agentHead', agent: dst })
  if (end.kind !== 'reply') return unexpected(end)
  return answerOf(await context.request(src, { kind: 'edgeAdd', agent: src, dst, edgeType, weight, options }))
}

/** DELETE /v1/graph/edges: immediately or by a proposal, depending on the zone of `src`. */
const remove: CommandRoute = {
  kind: 'command',
  method: 'del',
  path: '/v1/graph/edges',
  scope: 'records:delete',
  errors: ['agent_not_found', 'edge_not_found', 'zone_immutable', 'proposal_open', 'import_open'],
  docs: {
    summary: 'Remove an edge',
    tag: 'Graph',
    query: {
      src: { ...AgentAddress, example: 'boiler-2' },
      edge_type: { ...EdgeType, example: 'feeds' },
      dst: { ...AgentAddress, example: 'sensors' },
    },
    required: ['src', 'edge_type', 'dst'],
    answers: { 200: EdgeRemoved, 202: Proposed },
    idempotent: true,
    ifMatch: true,
  },
  toCommand: removeCommand,
}

function removeCommand(request: RouteRequest): AddressedCommand | Refusal {
  const agent = endParameter(request, 'src')
  if (typeof agent !== 'string') return agent
  const edgeType = edgeTypeParameter(request)
  if (typeof edgeType === 'object') return edgeType
  if (edgeType === undefined) return noEdgeType
  const dst = endParameter(request, 'dst')
  if (typeof dst !== 'string') return dst
  const options = writeOptions(request)
  if ('code' in options) return options
  return { agent, command: { kind: 'edgeRemove', agent, dst, edgeType, ...authorOf(request), options } }
}

/** GET /v1/graph/edges/:agent: the edges of an agent, by type and then by the agent at the other end. */
const list: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/graph/edges/:agent',
  scope: 'records:read',
  docs: {
    summary: 'Edges of an agent',
    tag: 'Graph',
    query: {
      direction: Type.Enum(['out', 'in'], { default: 'out', description: 'From the agent, or to it' }),
      ...filters,
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
      cursor: Cursor,
    },
    answers: { 200: EdgePage },
  },
  handle: listEdges,
}

async function listEdges(request: RouteRequest, context: RouteContext): Promise<Answer | Refusal> {
  const filter = filterOf(request)
  if ('code' in filter) return filter
  const direction = request.query.get('direction') ?? 'out'
  if (direction !== 'out' && direction !== 'in') return faultyParameter('?direction', 'Expected out or in')
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const after = cursorParameter(request, direction)
  if (after !== undefined && 'code' in after) return after
  if (direction === 'in') {
    // All shards return their part, but only the agent's own shard knows whether the agent exists.
    const head = await context.request(filter.agent, { kind: 'agentHead', agent: filter.agent })
    if (head.kind !== 'reply') return unexpected(head)
  }
  const page = await edgePage(
    {
      ...filter,
      direction,
      limit,
      ...(after !== undefined && { after }),
      principal: request.principal,
    },
    context,
  )
  if ('code' in page) return page
  const { edges, next } = page
  return json(200, {
    edges: edges.map(shown),
    next_cursor: next === undefined ? null : encodeCursor(`edges ${direction}`, [next.edgeType, next.other]),
  })
}

/** GET /v1/graph/traverse/:agent: agents that outbound edges lead to, breadth-first. */
const walk: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'get',
  path: '/v1/graph/traverse/:agent',
  scope: 'records:read',
  docs: {
    summary: 'Agents within a number of steps over outbound edges',
    tag: 'Graph',
    query: {
      depth: Type.Integer({ minimum: 1, maximum: limits.graphDepthMax, default: 1 }),
      ...filters,
    },
    answers: { 200: TraversalResult },
  },
  async handle(request, context) {
    const filter = filterOf(request)
    if ('code' in filter) return filter
    const depth = integerQuery(request, 'depth', { min: 1, max: limits.graphDepthMax, fallback: 1 })
    if (typeof depth !== 'number') return depth
    const found = await traverse({ ...filter, depth, principal: request.principal }, context)
    if ('code' in found) return found
    const { nodes, edges, truncated } = found
    const result: TraversalResult = { nodes, edges: edges.map(shown), truncated }
    return json(200, result)
  },
}

/** The agent of the path, and the filter of its edges. */
function filterOf(request: RouteRequest) {
  const agent = reachableAgent(request, request.params[0])
  if (typeof agent !== 'string') return agent
  const edgeType = edgeTypeParameter(request)
  if (typeof edgeType === 'object') return edgeType
  const asOf = momentParameter(request, 'as_of')
  if (asOf !== undefined && 'code' in asOf) return asOf
  return { agent, ...(edgeType !== undefined && { edgeType }), ...(asOf !== undefined && { asOf }) }
}

function shown({ src, dst, edgeType, weight }: EdgeRow): GraphEdge {
  return { src, dst, edge_type: edgeType, weight }
}

const noEdgeType = faultyParameter(
  '?edge_type',
  'Expected a type of 1 to 64 characters from A-Z a-z 0-9 _ . : / -',
)

function edgeTypeParameter({ query }: RouteRequest): string | undefined | Refusal {
  const text = query.get('edge_type')
  return text === null || wholeEdgeType.test(text) ? (text ?? undefined) : noEdgeType
}

/** One end of an edge, if the caller reaches it. */
function endParameter(request: RouteRequest, name: 'src' | 'dst'): string | Refusal {
  const agent = agentParameter(request.query.get(name) ?? undefined)
  if (typeof agent !== 'string') return faultyParameter(`?${name}`, 'Expected the name of an agent')
  return agentRefusal(request, agent) ?? agent
}

/** The cursor is used as a key of the store, so its parts must be valid for an edge. */
function cursorParameter({ query }: RouteRequest, direction: 'out' | 'in'): EdgeCursor | undefined | Refusal {
  const text = query.get('cursor')
  if (text === null) return undefined
  const [edgeType, other] = decodeTexts(text, `edges ${direction}`, 2) ?? []
  if (edgeType === undefined || other === undefined) return badCursor
  const isValid = wholeEdgeType.test(edgeType) && typeof agentParameter(other) === 'string'
  return isValid ? { edgeType, other } : badCursor
}

export const graphRoutes = [add, remove, list, walk]
