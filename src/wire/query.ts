import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { operators, policyOperators } from '../strand/operators.js'
import { queriedTypePattern, queriedTypesMax } from '../strand/record-type.js'
import { documented, documentedParts } from './documented.js'
import { headExample, recordExample, second } from './example-values.js'
import { ChainHead } from './agents.js'
import { Cursor, Moment, NextCursor, PageLimit } from './primitives.js'
import { RecordView } from './records.js'

const comparison = {
  field: Type.String({
    minLength: 1,
    maxLength: 256,
    description:
      'Path into the body: names with dots between them, or a JSON Pointer that begins with / (RFC 6901)',
  }),
  value: Type.Unknown({
    description:
      `With \`in\`, a list of at most ${limits.whereItemsMax} items; with \`exists\`, true or false; ` +
      'with `lt`, `lte`, `gt` and `gte`, a number or a string; with `starts_with`, text, and with `contains`, a part ' +
      `of a text of at most ${limits.whereTextMax} characters, or an item of a list; with \`eq\` and \`ne\`, anything`,
  }),
}

/** One condition of a row policy. */
export const PolicyCondition = Type.Object(
  { ...comparison, op: Type.Enum([...policyOperators]) },
  { additionalProperties: false },
)

/** One condition of a `where`. */
const Condition = Type.Object(
  {
    ...comparison,
    op: Type.Enum([...operators]),
    ci: Type.Optional(
      Type.Boolean({
        description: 'Whether upper and lower case are the same (Unicode simple case folding)',
      }),
    ),
  },
  { additionalProperties: false },
)

const selection = {
  limit: Type.Optional(PageLimit),
  cursor: Type.Optional(Cursor),
  order: Type.Optional(Type.Enum(['asc', 'desc'], { description: 'Oldest or newest first' })),
  where: Type.Optional(
    Type.Array(Condition, { maxItems: limits.whereConditionsMax, description: 'All must hold' }),
  ),
  types: Type.Optional(
    Type.Array(Type.String({ pattern: `^${queriedTypePattern}$` }), {
      minItems: 1,
      maxItems: queriedTypesMax,
      description: 'Record types, or prefixes with *; if absent, all except sys/* and edge/*',
    }),
  ),
}

export const LatestQuery = Type.Object(
  { type: Type.Literal('latest'), ...selection },
  { additionalProperties: false },
)
export const TimeRangeQuery = Type.Object(
  {
    type: Type.Literal('time_range'),
    from_ts: Type.Optional(Moment),
    to_ts: Type.Optional(Moment),
    ...selection,
  },
  { additionalProperties: false },
)
const HashQuery = Type.Object(
  { type: Type.Literal('hash'), hash: Type.String({ pattern: '^(sha256:)?[0-9a-f]{64}$' }) },
  { additionalProperties: false },
)
const ChainHeadQuery = Type.Object({ type: Type.Literal('chain_head') }, { additionalProperties: false })

/** Bodies of POST /v1/agents/:agent/query, by their `type`. */
export const queryBodies = {
  latest: LatestQuery,
  time_range: TimeRangeQuery,
  hash: HashQuery,
  chain_head: ChainHeadQuery,
}
const where = [{ field: 'celsius', op: 'gt', value: 70 }]

export const QueryBody = Type.Union([LatestQuery, TimeRangeQuery, HashQuery, ChainHeadQuery])
export type QueryBody = Static<typeof QueryBody>
documented('QueryBody', QueryBody, {
  latest: { type: 'latest', limit: 20, where },
  time_range: {
    type: 'time_range',
    from_ts: '2026-01-01T00:00:00Z',
    to_ts: 1_790_000_000_000,
    types: ['reading'],
  },
  hash: { type: 'hash', hash: second },
  chain_head: { type: 'chain_head' },
})
export type LatestQuery = Static<typeof LatestQuery>
export type TimeRangeQuery = Static<typeof TimeRangeQuery>

/** A page of records. */
export const QueryResult = Type.Object({
  records: Type.Array(RecordView),
  next_cursor: NextCursor,
  warnings: Type.Optional(
    Type.Array(Type.String(), {
      description:
        'Conditions that compared a number with text, or text with a number, in an examined record: such a comparison ' +
        'never matches. Absent if there are none',
    }),
  ),
})
export type QueryResult = Static<typeof QueryResult>

/** Answer of POST /v1/agents/:agent/query: the head for `chain_head`, else records. */
export const QueryAnswer = Type.Union([QueryResult, ChainHead])

documentedParts({
  Condition,
  PolicyCondition,
  LatestQuery,
  TimeRangeQuery,
  HashQuery,
  ChainHeadQuery,
  QueryResult,
})
documented('QueryAnswer', QueryAnswer, {
  records: { records: [recordExample], next_cursor: null },
  head: headExample,
})
