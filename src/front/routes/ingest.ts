import { Type } from 'typebox'
import { refuse, refuseCoding, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import { fieldPathDetail, fieldSteps } from '../../strand/field-path.js'
import { reading, readings } from '../../wire/example-values.js'
import { IngestManySummary, IngestSummary, mediaTypeOf, isJsonData } from '../../wire/ingest.js'
import { AgentAddress, JsonObject } from '../../wire/primitives.js'
import { WriteResponse } from '../../wire/records.js'
import {
  agentParameter,
  agentRefusal,
  faultyParameter,
  reachableAgent,
  Signed,
  writeOptions,
} from './parameters.js'
import type {
  IngestOptions,
  IngestRequest,
  IngestRoute,
  IngestSource,
  RouteRequest,
  RequestHeaders,
} from './route.js'
import type { EventHead } from '../../protocol/record-messages.js'

const ndjson = {
  mediaType: 'application/x-ndjson',
  description:
    'One JSON object per line; gzip by Content-Encoding. Only a line that is too long is refused, not the whole body. ' +
    '`application/json` and other `application/*+json` can be objects on lines as well, or an array of objects, of which ' +
    `nothing is written unless it is complete (at most ${limits.ingestArrayBytesMax} bytes), or one object, which on the route ` +
    'of one agent is a single record, answered 201. CloudEvents 1.0, structured, batched or binary (attributes in `ce-` ' +
    'headers, data in the body), become records in their JSON format, each written only once by `source` and `id`; for many ' +
    'agents, the extension attribute `agent` names the agent of each event',
}

/** Query parameters of both routes. */
export const uploadQuery = {
  on_error: Type.Enum(['skip', 'keep', 'reject_all'], {
    default: 'skip',
    description:
      '`skip` leaves invalid lines out. `keep` stores each as a signed record of type `ingest/rejected` with the body `{line, ' +
      'code, detail, text}`, so that 200 means that all lines are on disk: `base64` instead of `text` if it is not UTF-8; ' +
      'several records for a line that does not fit into one, each with `part`, `parts`, and the `bytes` and `sha256` of the ' +
      `whole line; a line of more than ${limits.ingestAtomicBytesMax} bytes is not stored: 413. \`reject_all\` writes nothing if ` +
      'a line is invalid',
  }),
  dedupe: Type.Enum(['body'], {
    description:
      'Do not write a record again that the same caller wrote to the same agent with `dedupe=body` within ' +
      `${limits.idempotencyHours} hours, with the same type and the same body in canonical form: it counts as accepted and in ` +
      '`duplicates`. A CloudEvent is always identified by its `source` and `id`',
  }),
  integers: Type.Enum(['text'], {
    description:
      'Store integers beyond ±(2^53-1) as strings of their digits; by default they are refused, because other JSON parsers ' +
      'would round them',
  }),
  signing: Signed,
}

/** `?rejected_agent=` of a route for many agents. */
export const RejectedAgent = Type.Unsafe<string>({
  ...AgentAddress,
  description:
    'Required with `on_error=keep`: the agent that stores refused lines which name no agent that the caller can write to',
})

/** Query parameters of the route of one agent. */
const ofOne = {
  split: Type.String({
    description:
      'The body is one JSON object: create a record from each member of the array at this path, a JSON Pointer (RFC 6901) or ' +
      'names separated by dots. A record is the object with the member in place of the array. Nothing of an incomplete object ' +
      `is written. At most ${limits.ingestArrayBytesMax} bytes, ${limits.ingestSplitRestBytesMax} of them outside of the array`,
    examples: ['/items'],
  }),
  split_rest: Type.Enum(['keep', 'drop'], {
    default: 'keep',
    description:
      'With `split`: `drop` creates each record from the member alone, which then has to be an object',
  }),
}

const addressed = [
  { agent: 'sensors', data: reading },
  { agent: 'doors', data: { door: 'north', open: true } },
]

/** `agent` names the agent if the path does not. */
const event = {
  specversion: '1.0',
  id: '7f3a',
  source: '/rooms/boiler',
  type: 'org.example.reading',
  agent: 'sensors',
  data: reading,
}

/** CloudEvents in JSON; an event in binary mode uses `ce-` headers. */
const events = {
  'application/cloudevents+json': { schema: JsonObject, examples: { event } },
  'application/cloudevents-batch+json': { schema: Type.Array(JsonObject), examples: { batch: [event] } },
}

const oneOrMore = Type.Unsafe({ oneOf: [JsonObject, Type.Array(JsonObject)] })

const linesOf = (values: readonly object[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

/** POST /v1/ingest/:agent: one record, or a stream with one record per line. */
const ingestOne: IngestRoute = {
  kind: 'ingest',
  takesEvents: true,
  method: 'post',
  path: '/v1/ingest/:agent',
  scope: 'ingest',
  users: true,
  docs: {
    summary: 'Ingest one record, or a stream of them',
    tag: 'Ingest',
    query: { ...uploadQuery, ...ofOne },
    request: {
      ...ndjson,
      example: linesOf(readings),
      others: {
        'application/json': {
          schema: oneOrMore,
          examples: { record: reading, array: readings },
        },
        ...events,
      },
    },
    answers: { 200: IngestSummary, 201: WriteResponse },
    idempotent: true,
    ifMatch: true,
  },
  toIngest(request) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    const ingest = toIngest(request)
    if ('code' in ingest) return ingest
    const source = splitOf(request, ingest.source)
    return 'code' in source ? source : { ...ingest, source, target: { agent } }
  },
}

/** POST /v1/ingest: lines `{agent, data, type?}` for many agents in one stream. */
const ingestMany: IngestRoute = {
  kind: 'ingest',
  takesEvents: true,
  method: 'post',
  path: '/v1/ingest',
  scope: 'ingest',
  users: true,
  docs: {
    summary: 'Ingest a stream of records of many agents: lines {agent, data, type?}',
    tag: 'Ingest',
    request: {
      ...ndjson,
      example: linesOf(addressed),
      others: {
        'application/json': { schema: oneOrMore, examples: { record: addressed[0], array: addressed } },
        ...events,
      },
    },
    query: {
      rejected_agent: RejectedAgent,
      ...uploadQuery,
    },
    answers: { 200: IngestManySummary, 201: WriteResponse },
    idempotent: true,
  },
  toIngest(request) {
    if (request.headers.ifMatch !== '')
      return refuse('validation_failed', 'Expected no If-Match: each agent has its own chain head')
    const ingest = toIngest(request)
    if ('code' in ingest) return ingest
    const { options, source } = ingest
    if (source.kind === 'event') {
      const agent = reachableAgent(request, source.event.attributes['agent'])
      return typeof agent === 'string' ? { ...ingest, target: { agent } } : agent
    }
    if (options.onError !== 'keep') return { ...ingest, target: {} }
    const rejectedAgent = rejectedAgentOf(request)
    return typeof rejectedAgent === 'string' ? { ...ingest, target: { rejectedAgent } } : rejectedAgent
  },
}

/** The agent that stores refused lines which name no agent that the caller can write to. */
export function rejectedAgentOf(request: RouteRequest): string | Refusal {
  const named = request.query.get('rejected_agent')
  const agent = named === null ? undefined : agentParameter(named)
  if (typeof agent === 'string') return agentRefusal(request, agent) ?? agent
  return faultyParameter(
    '?rejected_agent',
    'Expected the agent that stores refused lines without an agent that you can write to: on_error=keep requires it',
  )
}

function toIngest(request: RouteRequest): Omit<IngestRequest, 'target'> | Refusal {
  const source = sourceOf(request)
  if ('code' in source) return source
  const integers = request.query.get('integers')
  if (integers !== null && integers !== 'text') return faultyParameter('?integers', 'Expected text')
  const options = uploadOptions(request)
  if ('code' in options) return options
  const isOfEvents = source.kind === 'event' || (source.kind === 'json' && source.shape !== undefined)
  if (isOfEvents) options.once = { by: 'event', caller: request.principal.id }
  return { source, options: integers === null ? options : { ...options, integers } }
}

/** The options of an upload that do not depend on the format of its body. */
export function uploadOptions(request: RouteRequest): IngestOptions | Refusal {
  const encoding = request.headers.contentEncoding
  if (encoding !== '' && encoding !== 'identity' && encoding !== 'gzip') {
    return refuseCoding('gzip, identity', 'Expected Content-Encoding gzip or identity')
  }
  const onError = request.query.get('on_error') ?? 'skip'
  if (onError !== 'skip' && onError !== 'keep' && onError !== 'reject_all') {
    return faultyParameter('?on_error', 'Expected skip, keep or reject_all')
  }
  const dedupe = request.query.get('dedupe')
  if (dedupe !== null && dedupe !== 'body') return faultyParameter('?dedupe', 'Expected body')
  const options = writeOptions(request)
  if ('code' in options) return options
  const ingest: IngestOptions = { ...options, gzip: encoding === 'gzip', onError }
  if (dedupe !== null) ingest.once = { by: dedupe, caller: request.principal.id }
  return ingest
}

/** The source with `?split=` and `?split_rest=`. */
function splitOf({ query: parameters }: RouteRequest, source: IngestSource): IngestSource | Refusal {
  const path = parameters.get('split')
  const rest = parameters.get('split_rest')
  if (rest !== null && rest !== 'keep' && rest !== 'drop') {
    return faultyParameter('?split_rest', 'Expected keep or drop')
  }
  if (path === null) {
    return rest === null ? source : faultyParameter('?split_rest', 'Expected split together with split_rest')
  }
  const steps = fieldSteps(path)
  if (steps === undefined) return faultyParameter('?split', fieldPathDetail)
  if (source.kind !== 'json' || source.shape !== undefined) {
    return faultyParameter(
      '?split',
      'Expected split only with one JSON object, not with lines or a CloudEvent',
    )
  }
  return { kind: 'split', path, steps, keepsRest: rest !== 'drop' }
}

/** The format of the body, by its media type and the `ce-` headers of a CloudEvent; JSON by default. */
function sourceOf({ headers }: RouteRequest): IngestSource | Refusal {
  const mediaType = mediaTypeOf(headers.contentType)
  if (mediaType === 'application/cloudevents+json') return { kind: 'json', shape: 'one' }
  if (mediaType === 'application/cloudevents-batch+json') return { kind: 'json', shape: 'array' }
  if (headers.event.length > 0) {
    const event = eventHead(headers)
    return 'code' in event ? event : { kind: 'event', event }
  }
  if (mediaType === '' || /^application\/(?:[^/]+\+)?json$/.test(mediaType)) return { kind: 'json' }
  if (['application/x-ndjson', 'application/ndjson', 'application/jsonl'].includes(mediaType))
    return { kind: 'lines' }
  return refuse('unsupported_media_type', 'Expected Content-Type application/json or application/x-ndjson')
}

export const ingestRoutes = [ingestOne, ingestMany]

/*
 * CloudEvents 1.0 in binary mode (HTTP Protocol Binding): attributes are `ce-` headers, the body is the data.
 */

/** Attributes that are not `ce-` headers: members of the JSON format, or set by Content-Type. */
const notByHeader = new Set(['data', 'datacontenttype'])

/**
 * The attributes of an event in binary mode; 400 if one is invalid. The shard checks for required attributes.
 */
function eventHead({ event, contentType }: RequestHeaders): EventHead | Refusal {
  const attributes: Record<string, string> = {}
  for (const [name, raw] of event) {
    const value = decoded(raw)
    if (!/^[a-z0-9]+$/.test(name) || notByHeader.has(name) || value === undefined) {
      return refuse(
        'validation_failed',
        'Expected ce- headers with names of a-z and 0-9, and percent-encoded values',
      )
    }
    if (Object.hasOwn(attributes, name)) return refuse('validation_failed', `Expected one header ce-${name}`)
    attributes[name] = value
  }
  if (contentType !== '') attributes['datacontenttype'] = contentType
  return { attributes, data: dataOf(mediaTypeOf(contentType)) }
}

function dataOf(mediaType: string): EventHead['data'] {
  if (isJsonData(mediaType)) return 'json'
  return mediaType.startsWith('text/') ? 'text' : 'base64'
}

/**
 * Decodes a header value; a `%` without two hex digits stays as it is, because some senders do not encode.
 */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll(/%(?![\da-f]{2})/gi, '%25'))
  } catch {
    // Not percent-encoded UTF-8.
    return undefined
  }
}
