import { BinaryWriter } from '@bufbuild/protobuf/wire'
import { Type } from 'typebox'
import { refuse, statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import {
  OtlpLogs,
  OtlpLogsAnswer,
  otlpEncodingOf,
  type OtlpSignal,
  OtlpTraces,
  OtlpTracesAnswer,
  protobufType,
} from '../../wire/otlp.js'
import { RejectedAgent, rejectedAgentOf, uploadOptions, uploadQuery } from './ingest.js'
import { faultyParameter, reachableAgent } from './parameters.js'
import { problemDocuments, type RefusalForm } from './refusal-form.js'
import type { IngestRequest, IngestRoute, RouteRequest } from './route.js'

/* OTLP/HTTP: each log record or span becomes a record (docs/adr/0049-otlp.md). */

const { dedupe, signing } = uploadQuery

const onError = Type.Enum(['skip', 'keep'], {
  default: 'skip',
  description:
    '`skip` leaves out records that cannot be written, and reports them as partial success. `keep` stores each as a signed ' +
    'record of type `ingest/rejected`',
})

/** What the routes of a signal differ in. */
const signals = {
  logs: {
    name: 'log records, each as a record of type otel/log',
    query: { dedupe },
    body: OtlpLogs,
    answer: OtlpLogsAnswer,
  },
  traces: {
    name: 'spans, each as a record of type otel/span, which is written once if it is sent again',
    query: {},
    body: OtlpTraces,
    answer: OtlpTracesAnswer,
  },
}

/** The base address of exporters: the server, or an agent. */
type Base = '' | '/v1/otlp/:agent'

const shared = {
  kind: 'ingest',
  method: 'post',
  scope: 'ingest',
  users: true,
  refusals: otlpRefusals,
} as const

function otlpRoute(signal: OtlpSignal, base: Base): IngestRoute {
  const { name, query, body, answer } = signals[signal]
  const isOfAgent = base !== ''
  return {
    ...shared,
    path: `${base}/v1/${signal}`,
    errors: ['import_open'],
    docs: {
      summary: `Ingest OTLP ${name}`,
      tag: 'Ingest',
      query: {
        on_error: onError,
        ...(isOfAgent ? {} : { rejected_agent: RejectedAgent }),
        ...query,
        signing,
      },
      request: {
        mediaType: protobufType,
        description:
          'OTLP 1.x in protobuf or JSON; gzip by Content-Encoding. ' +
          (isOfAgent
            ? 'The path names the agent'
            : 'The agent is that of `Strandfast-Agent`, or else the `service.name` of the resource, of which each character ' +
              'that the name of an agent cannot have becomes `_`; `unknown_service` without one'),
        others: { 'application/json': { schema: body, examples: {} } },
      },
      answers: { 200: answer },
      idempotent: true,
      agentHeader: !isOfAgent,
    },
    toIngest: (request) => toIngest(request, signal),
  }
}

function toIngest(request: RouteRequest, signal: OtlpSignal): IngestRequest | Refusal {
  const { headers, params, query } = request
  const encoding = otlpEncodingOf(headers.contentType)
  if (encoding === undefined) {
    return refuse('unsupported_media_type', `Expected Content-Type ${protobufType} or application/json`)
  }
  if (headers.ifMatch !== '') return refuse('validation_failed', 'Expected no If-Match')
  if (query.get('on_error') === 'reject_all') return faultyParameter('?on_error', 'Expected skip or keep')
  const named = params[0] ?? (headers.agent === '' ? undefined : headers.agent)
  const agent = named === undefined ? undefined : reachableAgent(request, named)
  if (typeof agent === 'object') return agent
  const options = uploadOptions(request)
  if ('code' in options) return options
  if (signal === 'traces') options.once = { by: 'body', caller: request.principal.id }
  const rejectedAgent = options.onError === 'keep' ? (agent ?? rejectedAgentOf(request)) : undefined
  if (typeof rejectedAgent === 'object') return rejectedAgent
  return {
    target: {
      addressed: true,
      ...(agent !== undefined && { agent }),
      ...(rejectedAgent !== undefined && { rejectedAgent }),
    },
    options,
    source: { kind: 'otlp', signal, encoding },
  }
}

/** Says that metrics are not for this server: an exporter would otherwise look for a wrong address. */
function metricsRoute(base: Base): IngestRoute {
  return {
    ...shared,
    path: `${base}/v1/metrics`,
    anyQuery: true,
    errors: ['not_found'],
    docs: { summary: 'Refuse OTLP metrics', tag: 'Ingest', answers: {}, agentHeader: base === '' },
    toIngest: () => noMetrics,
  }
}

const noMetrics = refuse(
  'not_found',
  'OTLP metrics are not accepted, only logs and traces: send metrics to a Prometheus',
)

const bases: readonly Base[] = ['', '/v1/otlp/:agent']

export const otlpRoutes = bases.flatMap((base) => [
  otlpRoute('logs', base),
  otlpRoute('traces', base),
  metricsRoute(base),
])

/**
 * A refusal with a status of OTLP. A sender drops what is answered with another status than 429, 502, 503 or
 * 504: a full disk and an agent that is being imported are answered 503, and invalid records 400 (OTLP
 * Specification, Failures).
 */
export function otlpRefusal(refusal: Refusal): Refusal {
  const status = statusOf(refusal)
  if (status === 422) return { ...refusal, status: 400 }
  if (status === 507) return { retryAfterSecs: limits.storageFullRetrySecs, ...refusal, status: 503 }
  if (refusal.code === 'import_open') return { retryAfterSecs: 1, ...refusal, status: 503 }
  return status === 429 || status === 503 ? { retryAfterSecs: 1, ...refusal } : refusal
}

/** The form of refusals of a request: senders of protobuf get a google.rpc.Status. */
export function otlpRefusals(contentType: string): RefusalForm {
  const form = { ...problemDocuments, adapt: otlpRefusal }
  if (otlpEncodingOf(contentType) !== 'protobuf') return form
  return { ...form, encode: (refusal) => ({ contentType: protobufType, body: statusMessage(refusal) }) }
}

/** A google.rpc.Status with the member `message`. */
function statusMessage({ code, detail }: Refusal): Uint8Array {
  return new BinaryWriter().uint32(fieldOf(2, 2)).string(`${code}: ${detail}`).finish()
}

/** The tag of a field: its number, and its wire type: 0 for a number, 2 for bytes. */
export const fieldOf = (number: number, type: 0 | 2): number => (number << 3) | type
