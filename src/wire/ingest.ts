import { Type, type Static } from 'typebox'
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

const reached = {
  first_seq: Type.Union([Seq, Type.Null()]),
  last_seq: Type.Union([Seq, Type.Null()]),
  chain_head: Type.Union([Hash, Type.Null()]),
}

/** Summary of an NDJSON ingest into one agent. */
export const IngestSummary = Type.Object({ ...counted, errors: Type.Array(IngestFault), ...reached })
export type IngestSummary = Static<typeof IngestSummary>

/** Summary of an ingest into many agents. */
export const IngestManySummary = Type.Object({
  ...counted,
  errors: Type.Array(IngestFault),
  agents: Type.Record(Type.String(), Type.Object({ ...counted, ...reached })),
})
export type IngestManySummary = Static<typeof IngestManySummary>
