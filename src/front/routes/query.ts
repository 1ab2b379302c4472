import type { Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Outcome } from '../../protocol/messages.js'
import type { UserAccess } from '../../protocol/command-options.js'
import type { RecordQuery } from '../../protocol/record-messages.js'
import { comparedType, type Condition } from '../../strand/condition.js'
import { fieldPathDetail, fieldSteps } from '../../strand/field-path.js'
import { sayWhere } from '../../strand/json-fault.js'
import { readJson } from '../../strand/json.js'
import { momentExpected, momentLower, momentUpper } from '../../strand/moment.js'
import {
  queryBodies,
  QueryAnswer,
  QueryBody,
  type LatestQuery,
  type TimeRangeQuery,
} from '../../wire/query.js'
import { reader } from '../../wire/validate.js'
import { answerOf, unexpected } from './answers.js'
import {
  badCursor,
  decodeNumbers,
  encodeCursor,
  faultyParameter,
  hashParameter,
  reachableAgent,
  withAccess,
} from './parameters.js'
import type { Answer, HandlerRoute, RouteContext } from './route.js'

const latestBody = reader(queryBodies.latest)
const timeRangeBody = reader(queryBodies.time_range)
const hashBody = reader(queryBodies.hash)
const chainHeadBody = reader(queryBodies.chain_head)

/** Pages of one shard call that a query goes through before it answers with what it has and a cursor. */
const PAGES_MAX = 16

/** POST /v1/agents/:agent/query: the four kinds of query. */
const query: HandlerRoute = {
  kind: 'handler',
  compressed: true,
  method: 'post',
  path: '/v1/agents/:agent/query',
  scope: 'records:read',
  users: true,
  docs: {
    summary: 'Query records: latest, time_range, hash, chain_head',
    tag: 'Records',
    request: QueryBody,
    answers: { 200: QueryAnswer },
  },
  async handle(request, context) {
    const agent = reachableAgent(request, request.params[0])
    if (typeof agent !== 'string') return agent
    const parsed = readJson(request.body, limits.nestingDepthMax)
    if ('code' in parsed) return sayWhere(request.body, parsed)
    return answerQuery(withAccess(request, { agent }), parsed.value, context)
  },
}

/** The agent that is queried, and for whom. */
interface QueriedAgent {
  agent: string
  access?: UserAccess
}

async function answerQuery(
  place: QueriedAgent,
  body: unknown,
  context: RouteContext,
): Promise<Answer | Refusal> {
  switch (typeOf(body)) {
    case 'latest': {
      const latest = latestBody.value(body)
      return 'code' in latest ? latest : rows(rangeQuery(place, latest.value, 'desc'), context)
    }
    case 'time_range': {
      const range = timeRangeBody.value(body)
      return 'code' in range ? range : rows(rangeQuery(place, range.value, 'asc'), context)
    }
    case 'hash': {
      const one = hashBody.value(body)
      return 'code' in one ? one : byHash(place, one.value.hash, context)
    }
    case 'chain_head': {
      const head = chainHeadBody.value(body)
      if ('code' in head) return head
      return answerOf(await context.ask(place.agent, { kind: 'agentHead', ...place }))
    }
    default:
      return faultyParameter('/type', 'Expected latest, time_range, hash or chain_head')
  }
}

function typeOf(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'type' in body ? body.type : undefined
}

function rangeQuery(
  place: QueriedAgent,
  body: LatestQuery | TimeRangeQuery,
  order: 'asc' | 'desc',
): RecordQuery | Refusal {
  const command: RecordQuery = {
    kind: 'recordQuery',
    ...place,
    order: body.order ?? order,
    limit: body.limit ?? limits.pageRowsDefault,
  }
  if (body.where !== undefined) {
    const fault = whereFault(body.where)
    if (fault !== undefined) return fault
    command.where = body.where
  }
  if (body.types !== undefined) command.types = body.types
  if ('from_ts' in body && body.from_ts !== undefined) {
    const from = momentLower(body.from_ts)
    if (from === undefined) return badMoment('/from_ts')
    command.from = from
  }
  if ('to_ts' in body && body.to_ts !== undefined) {
    const to = momentUpper(body.to_ts)
    if (to === undefined) return badMoment('/to_ts')
    command.to = to
  }
  if (body.cursor !== undefined) {
    const [nextSeq, asOfSeq] = decodeNumbers(body.cursor, 2) ?? []
    if (nextSeq === undefined || asOfSeq === undefined) return { ...badCursor }
    command.cursor = { nextSeq, asOfSeq }
  }
  return command
}

function whereFault(where: readonly Condition[]): Refusal | undefined {
  for (const [place, { field, op, value }] of where.entries()) {
    if (fieldSteps(field) === undefined) return faultyParameter(`/where/${place}/field`, fieldPathDetail)
    if (op === 'in' && Array.isArray(value) && value.length > limits.whereItemsMax) {
      return faultyParameter(
        `/where/${place}/value`,
        `Expected at most ${limits.whereItemsMax} items with in`,
      )
    }
  }
  return undefined
}

function badMoment(pointer: string): Refusal {
  return faultyParameter(pointer, momentExpected)
}

async function rows(command: RecordQuery | Refusal, context: RouteContext): Promise<Answer | Refusal> {
  if ('code' in command) return command
  const page = await recordPage(command, context)
  if ('code' in page) return page
  const { where = [] } = command
  const warnings = where.flatMap((condition, place) =>
    page.mismatched.has(place) ? [mismatchWarning(condition, place)] : [],
  )
  return resultPage(page.rows, page.nextCursor, warnings)
}

function mismatchWarning(condition: Condition, place: number): string {
  const [compared, found] = comparedType(condition) === 'number' ? ['a number', 'text'] : ['text', 'a number']
  return `/where/${place} compares ${condition.field} with ${compared}, but some records have ${found} there, which never matches`
}

/** Rows, where the next page begins, and the conditions of the query that met records of another type, by their places. */
interface RecordPage {
  rows: Uint8Array[]
  nextCursor: string | null
  mismatched: ReadonlySet<number>
}

/** Goes on over pages that end early until the page is full, the strand is through, or enough was looked at. */
export async function recordPage(command: RecordQuery, context: RouteContext): Promise<RecordPage | Refusal> {
  const found: Uint8Array[] = []
  const mismatched = new Set<number>()
  let next: RecordQuery = command
  let bytes = 0
  for (let page = 0; page < PAGES_MAX; page++) {
    const outcome: Outcome = await context.ask(command.agent, {
      ...next,
      limit: command.limit - found.length,
      bytesMax: limits.pageBytesMax - bytes,
    })
    if (outcome.kind !== 'rows') return unexpected(outcome)
    for (const row of outcome.rows) {
      found.push(row)
      bytes += row.length
    }
    for (const place of outcome.mismatched ?? []) mismatched.add(place)
    if (outcome.cursor === undefined) return { rows: found, nextCursor: null, mismatched }
    next = { ...command, cursor: outcome.cursor }
    // What was found waits in memory for the next part, beside that of everybody else.
    if (found.length >= command.limit || bytes >= limits.pageEnoughBytes) break
  }
  const { cursor } = next
  const nextCursor = cursor === undefined ? null : encodeCursor([cursor.nextSeq, cursor.asOfSeq])
  return { rows: found, nextCursor, mismatched }
}

function resultPage(
  found: readonly Uint8Array[],
  nextCursor: string | null,
  warnings: readonly string[] = [],
): Answer {
  const warned = warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`
  const end = `],"next_cursor":${JSON.stringify(nextCursor)}${warned}}`
  return { status: 200, body: joinRows('{"records":[', found, end) }
}

/** The parts of an answer: rows with commas in between, and what stands around them. */
export function joinRows(before: string, rows: readonly Uint8Array[], behind: string): Uint8Array[] {
  const parts: Uint8Array[] = [Buffer.from(before)]
  for (const [place, row] of rows.entries()) {
    if (place > 0) parts.push(comma)
    parts.push(row)
  }
  parts.push(Buffer.from(behind))
  return parts
}

const comma = Buffer.from(',')

/** `hash` finds one record or none; a deleted one is left out, as everywhere in query results. */
async function byHash(place: QueriedAgent, text: string, context: RouteContext): Promise<Answer | Refusal> {
  const hash = hashParameter(text, '/hash')
  if (typeof hash !== 'string') return hash
  const outcome = await context.ask(place.agent, { kind: 'recordGet', ...place, hash })
  if ('code' in outcome && outcome.code === 'record_not_found') return resultPage([], null)
  if (outcome.kind !== 'reply') return unexpected(outcome)
  return resultPage(outcome.gone === true ? [] : [Buffer.from(outcome.body)], null)
}

export const queryRoutes = [query]
