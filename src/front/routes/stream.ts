import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { fieldPathDetail, fieldSteps } from '../../strand/field-path.js'
import { momentExpected, momentLower } from '../../strand/moment.js'
import { first, reading, second } from '../../wire/example-values.js'
import { StreamTicket } from '../../wire/strand.js'
import { json } from './answers.js'
import {
  agentParameter,
  agentRefusal,
  faultyParameter,
  listQuery,
  reachableAgent,
  withAccess,
} from './parameters.js'
import type { HandlerRoute, RouteRequest, StreamRequest, StreamRoute } from './route.js'

const since = Type.String({
  description:
    'Replay from this moment before going live: HLC, ISO 8601 or Unix milliseconds (0, the beginning, or from 100000000000 up)',
})
const filter = Type.String({
  description:
    'Only payloads that have this field: its name, names with dots between them, or a JSON Pointer (RFC 6901), which begins with /',
})
const last_event_id = Type.String({
  description: 'The id of the last event that was seen, in place of the header Last-Event-ID, which beats it',
})
const lastEventId = Type.String({
  description: 'The same under the name by which polyfills of EventSource add it; it beats last_event_id',
})
const ticket = Type.String({
  description: 'A ticket of POST /v1/stream/tickets, in place of the header Authorization',
})
const shown = {
  record_id: second,
  payload: reading,
  agent: 'sensors',
  seq: 2,
  type: 'reading',
  timestamp_hlc: '0199c5b8f2a4-0000',
  timestamp_ms: 1_759_958_856_356,
  content_hash: second,
  parent_hash: first,
}

const events = {
  mediaType: 'text/event-stream',
  description:
    'Events `record` with {record_id, payload, agent, seq, type, timestamp_hlc, timestamp_ms, content_hash, parent_hash}; ' +
    '`caught_up` where replay meets live; Last-Event-ID goes on behind that event and beats since',
  example: `retry: 2000\n\nid: 2\nevent: record\ndata: ${JSON.stringify(shown)}\n\nevent: caught_up\ndata: {}\n\n`,
}

/** GET /v1/agents/:agent/stream */
const agentStream: StreamRoute = {
  kind: 'stream',
  method: 'get',
  path: '/v1/agents/:agent/stream',
  scope: 'records:read',
  users: true,
  docs: {
    summary: 'The records of one agent as they are written',
    tag: 'Streams',
    query: { since, last_event_id, lastEventId, filter, ticket },
    answers: { 200: events },
  },
  toStream(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return streamRequest(request, { scope: 'agent', agents: [agent] })
  },
}

/** GET /v1/stream */
const globalStream: StreamRoute = {
  kind: 'stream',
  method: 'get',
  path: '/v1/stream',
  scope: 'records:read',
  users: true,
  docs: {
    summary: 'The records of all agents, or of those named, as they are written',
    tag: 'Streams',
    query: {
      agents: Type.String({ description: 'Names, separated by commas or each in a parameter of its own' }),
      since,
      last_event_id,
      lastEventId,
      filter,
      ticket,
    },
    lists: ['agents'],
    answers: { 200: events },
  },
  toStream(request) {
    const named = listQuery(request, 'agents')
    if (named === undefined) {
      const { agents, user } = request.principal
      if (agents.length > 0) return refuse('forbidden', 'Expected the agents that the key reaches')
      if (user !== undefined) return refuse('forbidden', 'Expected the agents to be named')
      return streamRequest(request, { scope: 'global' })
    }
    const agents = [...new Set(named)]
    if (agents.length > limits.streamAgentsMax) {
      return faultyParameter('?agents', `Expected at most ${limits.streamAgentsMax} agents`)
    }
    for (const name of agents) {
      const agent = agentParameter(name)
      if (typeof agent !== 'string') return faultyParameter('?agents', agent.detail)
      const refusal = agentRefusal(request, name)
      if (refusal !== undefined) return refusal
    }
    return streamRequest(request, { scope: 'global', agents })
  },
}

function streamRequest(
  request: RouteRequest,
  what: Pick<StreamRequest, 'scope' | 'agents'>,
): StreamRequest | Refusal {
  const stream: StreamRequest = withAccess(request, { ...what })
  const from = request.query.get('since')
  if (from !== null) {
    if (momentLower(from) === undefined) return faultyParameter('?since', momentExpected)
    stream.since = from
  }
  const { headers, query } = request
  // What a reader adds when it reconnects is newer than what its address had from the beginning.
  const cursor = headers.lastEventId || query.get('lastEventId') || query.get('last_event_id') || ''
  if (cursor !== '') stream.cursor = cursor
  const filter = request.query.get('filter')
  if (filter !== null && filter !== '') {
    if (fieldSteps(filter) === undefined) return faultyParameter('?filter', fieldPathDetail)
    stream.filter = filter
  }
  return stream
}

/** POST /v1/stream/tickets: what an EventSource, which can send no header, opens a stream with, again and again. */
const tickets: HandlerRoute = {
  kind: 'handler',
  method: 'post',
  path: '/v1/stream/tickets',
  scope: 'records:read',
  users: true,
  bodyBytesMax: 1_024,
  errors: ['too_many_streams'],
  docs: {
    summary: 'A ticket for one stream and its reconnections',
    tag: 'Streams',
    answers: { 201: StreamTicket },
  },
  async handle(request, context) {
    const issued = await context.tickets.issue(request.principal)
    return typeof issued === 'string'
      ? json(201, { ticket: issued, expires_in: limits.streamTicketSecs })
      : issued
  },
}

export const streamRoutes = [agentStream, globalStream, tickets]
