import { Type } from 'typebox'
import type { Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { StrandThen, StrandThenOutcome } from '../../protocol/graph-messages.js'
import type { RecordQuery } from '../../protocol/record-messages.js'
import { Cursor } from '../../wire/primitives.js'
import { StrandAsOf } from '../../wire/strand.js'
import { unexpected } from './answers.js'
import {
  badCursor,
  decodeNumbers,
  momentParameter,
  pageLimit,
  reachableAgent,
  withAccess,
} from './parameters.js'
import { signPastTreeHead } from './proof.js'
import { joinRows, recordPage } from './query.js'
import type { Answer, HandlerRoute, RouteContext, RouteRequest } from './route.js'

/**
 * GET /v1/strand/as-of: a strand at a past time, with the signed tree head and the zone of that time
 * (docs/adr/0019-as-of.md).
 */
export function asOfRoute(defaultAgent: string): HandlerRoute {
  return {
    kind: 'handler',
    compressed: true,
    method: 'get',
    path: '/v1/strand/as-of',
    scope: 'records:read',
    users: true,
    docs: {
      summary: 'A strand as it was at a given time',
      tag: 'Strands',
      query: {
        ts: Type.String({
          description: 'ISO 8601, Unix milliseconds (0 or from 100000000000 up) or an HLC',
          example: '2026-01-01T00:00:00Z',
        }),
        agent: Type.String({ default: defaultAgent }),
        limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
        cursor: Cursor,
      },
      required: ['ts'],
      answers: { 200: StrandAsOf },
    },
    handle: (request, context) => asOf(request, { context, defaultAgent }),
  }
}

async function asOf(
  request: RouteRequest,
  { context, defaultAgent }: { context: RouteContext; defaultAgent: string },
): Promise<Answer | Refusal> {
  const agent = reachableAgent(request, request.query.get('agent') ?? defaultAgent)
  if (typeof agent !== 'string') return agent
  const moment = momentParameter(request, 'ts', 'required')
  if ('code' in moment) return moment
  const limit = pageLimit(request)
  if (typeof limit !== 'number') return limit
  const cursor = cursorOf(request)
  if (cursor !== undefined && 'code' in cursor) return cursor
  // Later pages use the head of the first page, because a time in the future would move it.
  const at: StrandThen['at'] = cursor === undefined ? { moment } : { seq: cursor.asOfSeq }
  const strandThen = await context.request(agent, withAccess(request, { kind: 'strandThen', agent, at }))
  if (strandThen.kind !== 'strandThen') return unexpected(strandThen)
  const ts = request.query.get('ts') ?? ''
  if (strandThen.head === undefined) return cursor === undefined ? noStrand(ts) : badCursor
  const page: RecordQuery = withAccess(request, {
    kind: 'recordQuery',
    agent,
    order: 'asc',
    limit,
    cursor: { nextSeq: cursor?.nextSeq ?? 0, asOfSeq: strandThen.head.seq },
  })
  return strandAnswer({ ts, strandThen, head: strandThen.head, page }, context)
}

interface StrandAtMoment {
  ts: string
  strandThen: StrandThenOutcome
  head: NonNullable<StrandThenOutcome['head']>
  page: RecordQuery
}

async function strandAnswer(
  { ts, strandThen: { shard, agentNo }, head, page }: StrandAtMoment,
  context: RouteContext,
): Promise<Answer | Refusal> {
  const records = await recordPage(page, list, context)
  if ('code' in records) return records
  const size = head.seq + 1
  const root = await context.read('treeRoot', { shard, agentNo, size })
  const signed = await signPastTreeHead(page.agent, { size, root }, context)
  // While an import is open the server may not have the key, but the records can be read.
  if (typeof signed === 'object' && signed.code !== 'import_open') return signed
  const checkpoint = typeof signed === 'string' ? signed : null
  const suffix =
    `],"chain_head":"${head.hash}",` +
    `"record_count":${head.seq},"next_cursor":${JSON.stringify(records.nextCursor)},` +
    `"checkpoint":${JSON.stringify(checkpoint)},"zone":"${head.zone}"}`
  return { status: 200, body: joinRows(`{"ts":${JSON.stringify(ts)},"records":[`, records.rows, suffix) }
}

/** The answer for a time before the genesis record. */
function noStrand(ts: string): Answer {
  const empty: StrandAsOf = {
    ts,
    records: [],
    chain_head: null,
    record_count: 0,
    next_cursor: null,
    checkpoint: null,
    zone: null,
  }
  return { status: 200, body: JSON.stringify(empty) }
}

/** What a cursor continues. */
const list = 'as-of'

function cursorOf({ query }: RouteRequest): RecordQuery['cursor'] | Refusal {
  const text = query.get('cursor')
  if (text === null) return undefined
  const [nextSeq, asOfSeq] = decodeNumbers(text, list, 2) ?? []
  return nextSeq === undefined || asOfSeq === undefined ? badCursor : { nextSeq, asOfSeq }
}
