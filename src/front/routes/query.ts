import type { Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Outcome } from '../../protocol/messages.js'
import type { UserAccess } from '../../protocol/command-options.js'
import type { RecordQuery } from '../../protocol/record-messages.js'
import { comparedType } from '../../strand/condition.js'
import { valueFault, type Condition } from '../../strand/operators.js'
import { fieldPathDetail, fieldSteps } from '../../strand/field-path.js'
import { locateFault } from '../../strand/json-fault.js'
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

/** The most pages that one query reads; after that it returns what it has, with a cursor. */
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
    if ('code' in parsed) return locateFault(request.body, parsed)
    return answerQuery(withAccess(request, { agent }), parsed.value, context)
  },
}

interface QueriedAgent {
  agent: string
  access?: UserAccess
}

async function answerQuery(
  queried: QueriedAgent,
  body: unknown,
  context: RouteContext,
): Promise<Answer | Refusal> {
  switch (typeOf(body)) {
    case 'latest': {
      const latest = latestBody.value(body)
      return 'code' in latest ? latest : rows(queried, latest.value, context)
    }
    case 'time_range': {
      const range = timeRangeBody.value(body)
      return 'code' in range ? range : rows(queried, range.value, context)
    }
    case 'hash': {
      const byHashBody = hashBody.value(body)
      return 'code' in byHashBody ? byHashBody : byHash(queried, byHashBody.value.hash, context)
    }
    case 'chain_head': {
      const head = chainHeadBody.value(body)
      if ('code' in head) return head
      return answerOf(await context.request(queried.agent, { kind: 'agentHead', ...queried }))
    }
    default:
      return faultyParameter('/type', 'Expected latest, time_range, hash or chain_head')
  }
}

function typeOf(body: unknown): unknown {
  return typeof body === 'object' && body !== null && 'type' in body ? body.type : undefined
}

type RangeBody = LatestQuery | TimeRangeQuery

function orderOf({ type, order }: RangeBody): 'asc' | 'desc' {
  return order ?? (type === 'latest' ? 'desc' : 'asc')
}

/** What a cursor continues: the other type of query, or the other order, would skip or repeat records. */
function listOf(body: RangeBody): string {
  return `${body.type} ${orderOf(body)}`
}

function rangeQuery(queried: QueriedAgent, body: RangeBody): RecordQuery | Refusal {
  const command: RecordQuery = {
    kind: 'recordQuery',
    ...queried,
    order: orderOf(body),
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
    const [nextSeq, asOfSeq] = decodeNumbers(body.cursor, listOf(body), 2) ?? []
    if (nextSeq === undefined || asOfSeq === undefined) return { ...badCursor }
    command.cursor = { nextSeq, asOfSeq }
  }
  return command
}

function whereFault(where: readonly Condition[]): Refusal | undefined {
  for (const [index, { field, ...compared }] of where.entries()) {
    const { op, value } = compared
    if (fieldSteps(field) === undefined) return faultyParameter(`/where/${index}/field`, fieldPathDetail)
    const isLong = op === 'in' && Array.isArray(value) && value.length > limits.whereItemsMax
    const detail = isLong ? `Expected at most ${limits.whereItemsMax} items with in` : valueFault(compared)
    if (detail !== undefined) return faultyParameter(`/where/${index}/value`, detail)
  }
  return undefined
}

function badMoment(pointer: string): Refusal {
  return faultyParameter(pointer, momentExpected)
}

async function rows(
  queried: QueriedAgent,
  body: RangeBody,
  context: RouteContext,
): Promise<Answer | Refusal> {
  const command = rangeQuery(queried, body)
  if ('code' in command) return command
  const page = await recordPage(command, listOf(body), context)
  if ('code' in page) return page
  const { where = [] } = command
  const warnings = where.flatMap((condition, index) =>
    page.mismatched.has(index) ? [mismatchWarning(condition, index)] : [],
  )
  return resultPage(page.rows, page.nextCursor, warnings)
}

function mismatchWarning(condition: Condition, index: number): string {
  const [compared, found] = comparedType(condition) === 'number' ? ['a number', 'text'] : ['text', 'a number']
  return `/where/${index} compares ${condition.field} with ${compared}, but some records have ${found} there, which never matches`
}

/**
 * The rows in pieces, the cursor of the next page, and the indexes of conditions that found records with a
 * value of another type.
 */
interface RecordPage {
  rows: Uint8Array[]
  nextCursor: string | null
  mismatched: ReadonlySet<number>
}

/**
 * Reads pages that end early until the result is full, the strand has ended, or enough was read.
 * @param list what the cursor of the next page continues
 */
export async function recordPage(
  command: RecordQuery,
  list: string,
  context: RouteContext,
): Promise<RecordPage | Refusal> {
  const found: Uint8Array[] = []
  let count = 0
  const mismatched = new Set<number>()
  let next: RecordQuery = command
  let bytes = 0
  for (let page = 0; page < PAGES_MAX; page++) {
    const outcome: Outcome = await context.request(command.agent, {
      ...next,
      limit: command.limit - count,
      bytesMax: limits.pageBytesMax - bytes,
    })
    if (outcome.kind !== 'rows') return unexpected(outcome)
    if (outcome.count > 0) found.push(outcome.rows)
    count += outcome.count
    bytes += outcome.rows.length
    for (const index of outcome.mismatched ?? []) mismatched.add(index)
    if (outcome.cursor === undefined) return { rows: found, nextCursor: null, mismatched }
    next = { ...command, cursor: outcome.cursor }
    // The rows stay in memory until the answer is complete, as those of other requests do.
    if (count >= command.limit || bytes >= limits.pageTargetBytes) break
  }
  const { cursor } = next
  const nextCursor = cursor === undefined ? null : encodeCursor(list, [cursor.nextSeq, cursor.asOfSeq])
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

/** The parts of an answer: pieces of rows separated by commas, between `prefix` and `suffix`. */
export function joinRows(prefix: string, rows: readonly Uint8Array[], suffix: string): Uint8Array[] {
  const parts: Uint8Array[] = [Buffer.from(prefix)]
  for (const [index, row] of rows.entries()) {
    if (index > 0) parts.push(comma)
    parts.push(row)
  }
  parts.push(Buffer.from(suffix))
  return parts
}

const comma = Buffer.from(',')

/** `hash` finds one record or none; deleted records are left out, as in all query results. */
async function byHash(queried: QueriedAgent, text: string, context: RouteContext): Promise<Answer | Refusal> {
  const hash = hashParameter(text, '/hash')
  if (typeof hash !== 'string') return hash
  const outcome = await context.request(queried.agent, { kind: 'recordGet', ...queried, hash })
  if ('code' in outcome && outcome.code === 'record_not_found') return resultPage([], null)
  if (outcome.kind !== 'reply') return unexpected(outcome)
  return resultPage(outcome.deleted === true ? [] : [Buffer.from(outcome.body)], null)
}

export const queryRoutes = [query]
