import { Type } from 'typebox'
import { documented } from './documented.js'
import { mediaTypeOf } from './ingest.js'
import { JsonObject } from './primitives.js'

/** The media type of OTLP in protobuf. */
export const protobufType = 'application/x-protobuf'

/** What an OTLP request carries, and in which encoding. */
export interface OtlpFormat {
  signal: 'logs' | 'traces'
  encoding: 'json' | 'protobuf'
}

export type OtlpSignal = OtlpFormat['signal']

/** The encoding of a media type; undefined if OTLP has none of this type. */
export function otlpEncodingOf(contentType: string): OtlpFormat['encoding'] | undefined {
  const mediaType = mediaTypeOf(contentType)
  if (mediaType === 'application/json') return 'json'
  return mediaType === protobufType ? 'protobuf' : undefined
}

const log = {
  timeUnixNano: '1785603000000000000',
  severityNumber: 9,
  body: { stringValue: 'The valve is open' },
}
const span = {
  traceId: '5b8efff798038103d269b633813fc60c',
  spanId: 'eee19b7ec3c1b174',
  name: 'open valve',
  kind: 1,
  startTimeUnixNano: '1785603000000000000',
  endTimeUnixNano: '1785603000250000000',
}
const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'boiler' } }] }

/** ExportLogsServiceRequest in OTLP JSON. */
export const OtlpLogs = Type.Object({ resourceLogs: Type.Optional(Type.Array(JsonObject)) })
documented('OtlpLogs', OtlpLogs, {
  log: { resourceLogs: [{ resource, scopeLogs: [{ scope: { name: 'valves' }, logRecords: [log] }] }] },
})

/** ExportTraceServiceRequest in OTLP JSON. */
export const OtlpTraces = Type.Object({ resourceSpans: Type.Optional(Type.Array(JsonObject)) })
documented('OtlpTraces', OtlpTraces, {
  span: { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'valves' }, spans: [span] }] }] },
})

const count = Type.Optional(
  Type.String({ pattern: '^[0-9]+$', description: 'Records that were not written' }),
)
const errorMessage = Type.Optional(Type.String({ description: 'The first reasons' }))

/** ExportLogsServiceResponse in OTLP JSON. */
export const OtlpLogsAnswer = Type.Object({
  partialSuccess: Type.Optional(Type.Object({ rejectedLogRecords: count, errorMessage })),
})
const errorExample = 'record 2: too_large: Expected a record of at most 262144 bytes, got 300000'
documented('OtlpLogsAnswer', OtlpLogsAnswer, {
  written: {},
  partly: { partialSuccess: { rejectedLogRecords: '1', errorMessage: errorExample } },
})

/** ExportTraceServiceResponse in OTLP JSON. */
export const OtlpTracesAnswer = Type.Object({
  partialSuccess: Type.Optional(Type.Object({ rejectedSpans: count, errorMessage })),
})
documented('OtlpTracesAnswer', OtlpTracesAnswer, {
  written: {},
  partly: { partialSuccess: { rejectedSpans: '1', errorMessage: errorExample } },
})
