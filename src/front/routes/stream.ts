import { Type } from 'typebox'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { fieldPathDetail, fieldSteps } from '../../strand/field-path.js'
import { isQueriedType, queriedTypesMax } from '../../strand/record-type.js'
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
    'Replay from this time before live events: HLC, ISO 8601 or Unix milliseconds (0 for the beginning, or from 100000000000 up)',
})
const filter = Type.String({
  description:
    'Only payloads that have this field: its name, names separated by dots, or a JSON Pointer (RFC 6901), which starts with /',
})
const types = Type.String({
  description:
    'Record types, or prefixes with *, separated by commas or in repeated parameters; if absent, all except sys/* and edge/*. ' +
    'sys/heads of the server log is never sent; records of server::audit only to keys with admin:* that are not limited to agents',
})
const last_event_id = Type.String({
  description:
    'The id of the last received event, for clients that cannot send Last-Event-ID; the header takes precedence',
})
const lastEventId = Type.String({
  description:
    'The same, under the name that polyfills of EventSource use; takes precedence over last_event_id',
})
const ticket = Type.String({
  description: 'A ticket of POST /v1/stream/tickets, instead of the header Authorization',
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
    '`caught_up` when the replay has reached live events; Last-Event-ID continues after that event and takes precedence over since',
  example: `retry: 2000\n\nid: 2\nevent: record\ndata: ${JSON.stringify(shown)}\n\nevent: caught_up\ndata: {}\n\n`,
}

const agentStream: StreamRoute = {
  kind: 'stream',
  method: 'get',
  path: '/v1/agents/:agent/stream',
  scope: 'records:read',
  users: true,
  docs: {
    summary: 'The records of one agent as they are written',
    tag: 'Streams',
    query: { since, last_event_id, lastEventId, filter, types, ticket },
    lists: ['types'],
    answers: { 200: events },
  },
  toStream(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    return streamRequest(request, { scope: 'agent', agents: [agent] })
  },
}

const globalStream: StreamRoute = {
  kind: 'stream',
  method: 'get',
  path: '/v1/stream',
  scope: 'records:read',
  users: true,
  docs: {
    summary: 'The records of all agents, or of the named ones, as they are written',
    tag: 'Streams',
    query: {
      agents: Type.String({ description: 'Names, separated by commas or in repeated parameters' }),
      since,
      last_event_id,
      lastEventId,
      filter,
      types,
      ticket,
    },
    lists: ['agents', 'types'],
    answers: { 200: events },
  },
  toStream(request) {
    const named = listQuery(request, 'agents')
    if (named === undefined) {
      const { agents, user } = request.principal
      if (agents.length > 0)
        return refuse('forbidden', 'This key is limited to agents: name them in ?agents=')
      if (user !== undefined) return refuse('forbidden', 'A user has to name the agents in ?agents=')
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
  subject: Pick<StreamRequest, 'scope' | 'agents'>,
): StreamRequest | Refusal {
  const stream: StreamRequest = withAccess(request, { ...subject })
  const from = request.query.get('since')
  if (from !== null) {
    if (momentLower(from) === undefined) return faultyParameter('?since', momentExpected)
    stream.since = from
  }
  const { headers, query } = request
  // A parameter that a client adds when it reconnects is newer than one in its original address.
  const cursor = headers.lastEventId || query.get('lastEventId') || query.get('last_event_id') || ''
  if (cursor !== '') stream.cursor = cursor
  const filter = request.query.get('filter')
  if (filter !== null) {
    if (fieldSteps(filter) === undefined) return faultyParameter('?filter', fieldPathDetail)
    stream.filter = filter
  }
  const named = listQuery(request, 'types')
  if (named !== undefined) {
    if (named.length > queriedTypesMax || !named.every(isQueriedType))
      return faultyParameter('?types', `Expected at most ${queriedTypesMax} record types, or prefixes with *`)
    stream.types = named
  }
  return stream
}

/**
 * POST /v1/stream/tickets: a ticket with which an EventSource, which cannot send headers, opens and reopens a
 * stream.
 */
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
