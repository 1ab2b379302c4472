import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { documented } from './documented.js'
import { second } from './example-values.js'
import { Hash, Seq } from './primitives.js'

const IngestFault = Type.Object({
  line: Type.Integer({ minimum: 1 }),
  agent: Type.Optional(Type.String()),
  code: Type.String(),
  detail: Type.String(),
})

const counted = {
  accepted: Type.Integer({ minimum: 0 }),
  rejected: Type.Integer({ minimum: 0 }),
}

const refused = {
  duplicates: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: 'Accepted lines whose record had been written before; absent if there are none',
    }),
  ),
  kept: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'Refused lines that are stored as records of type ingest/rejected; absent if there are none',
    }),
  ),
  rejected_by_code: Type.Optional(
    Type.Record(Type.String(), Type.Integer({ minimum: 1 }), {
      description: 'The number of refused lines by code; absent if there are none',
    }),
  ),
}

const reached = {
  first_seq: Type.Union([Seq, Type.Null()]),
  last_seq: Type.Union([Seq, Type.Null()]),
  chain_head: Type.Union([Hash, Type.Null()]),
}

const summary = { accepted: 2, rejected: 1, first_seq: 3, last_seq: 4, chain_head: second }
const fault = { line: 2, code: 'validation_failed', detail: 'Expected a JSON object' }
const byCode = { rejected_by_code: { validation_failed: 1 } }

/** Summary of an NDJSON ingest into one agent. */
export const IngestSummary = Type.Object({
  ...counted,
  ...refused,
  errors: Type.Array(IngestFault),
  ...reached,
})
export type IngestSummary = Static<typeof IngestSummary>
documented('IngestSummary', IngestSummary, { summary: { ...summary, ...byCode, errors: [fault] } })

/** Summary of an ingest into many agents. */
export const IngestManySummary = Type.Object({
  ...counted,
  ...refused,
  errors: Type.Array(IngestFault),
  agents: Type.Record(Type.String(), Type.Object({ ...counted, ...reached }), {
    description: `The agents with a line in the upload, at most ${limits.ingestAgentsNamedMax}`,
  }),
  agents_truncated: Type.Optional(
    Type.Literal(true, { description: 'The upload has more agents than are listed' }),
  ),
})
export type IngestManySummary = Static<typeof IngestManySummary>
documented('IngestManySummary', IngestManySummary, {
  summary: {
    accepted: 2,
    rejected: 1,
    ...byCode,
    errors: [{ ...fault, agent: 'sensors' }],
    agents: { sensors: summary },
  },
})

/** A media type without its parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Whether data of a media type is JSON, which is also the default (CloudEvents 1.0, JSON Event Format). */
export function isJsonData(mediaType: string): boolean {
  return mediaType === '' || /^(?:application|text)\/(?:[^/]+\+)?json$/.test(mediaType)
}
