import { type Static, type TSchema, Type } from 'typebox'
import { reachesAgent, reaches } from '../../auth/namespace.js'
import { fromBase64url } from '../../base/bytes.js'
import { auditAgent } from '../../strand/organism-id.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Signing, UserAccess, WriteOptions } from '../../protocol/command-options.js'
import type { Author } from '../../protocol/proposal-messages.js'
import type { Hlc } from '../../strand/hlc.js'
import { momentExpected, momentUpper } from '../../strand/moment.js'
import { agentAddressPattern, agentNamePattern } from '../../wire/primitives.js'
import { reader } from '../../wire/validate.js'
import type { Answer, Principal, RouteRequest } from './route.js'

/* Parses the parts of a request that many routes share: path, query, headers and body. */

const agentAddress = new RegExp(agentAddressPattern)
const agentName = new RegExp(agentNamePattern)

/** Handles requests with a body of the schema; its faults are answered first. */
export function withBody<Schema extends TSchema, Request extends Pick<RouteRequest, 'body'>, Context>(
  schema: Schema,
  handle: (body: Static<Schema>, request: Request, context: Context) => Promise<Answer | Refusal>,
): (request: Request, context: Context) => Promise<Answer | Refusal> {
  const read = reader(schema)
  return async (request, context) => {
    const body = read.bytes(request.body)
    return 'code' in body ? body : handle(body.value, request, context)
  }
}

/** 400 for a path or query parameter; the pointer is `?name` or `:name`. */
export function faultyParameter(pointer: string, detail: string): Refusal {
  return refuse('validation_failed', detail, { faults: [{ pointer, code: 'validation_failed', detail }] })
}

/** The agent name of a path parameter; names of organisms' agents contain `::`. */
export function agentParameter(text: string | undefined): string | Refusal {
  if (text !== undefined && agentAddress.test(text)) return text
  return faultyParameter(':agent', 'Expected an agent name of 1 to 128 characters from A-Z a-z 0-9 _ . -')
}

/** The name of a collection. A write can create it, so it is never an agent of an organism. */
export function collectionParameter(text: string | undefined): string | Refusal {
  if (text !== undefined && agentName.test(text)) return text
  return faultyParameter(':name', 'Expected a collection name of 1 to 128 characters from A-Z a-z 0-9 _ . -')
}

/** The hash of a record, with or without its prefix; returned without. */
export function hashParameter(text: string | undefined, pointer: string): string | Refusal {
  const match = text === undefined ? null : /^(?:sha256:)?([0-9a-f]{64})$/.exec(text)
  return (
    match?.[1] ?? faultyParameter(pointer, 'Expected a record hash: 64 hex digits, with or without sha256:')
  )
}

/** A whole number within bounds; `fallback` if absent. */
export function integerQuery(
  request: RouteRequest,
  name: string,
  bounds: { min: number; max: number; fallback: number },
): number | Refusal {
  const text = request.query.get(name)
  if (text === null) return bounds.fallback
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
  if (value >= bounds.min && value <= bounds.max) return value
  return faultyParameter(`?${name}`, `Expected a whole number from ${bounds.min} to ${bounds.max}`)
}

/** The items of a list, separated by commas or in repeated parameters; undefined if absent. */
export function listQuery({ query }: Pick<RouteRequest, 'query'>, name: string): string[] | undefined {
  return query.has(name) ? query.getAll(name).flatMap((text) => text.split(',')) : undefined
}

export function pageLimit(request: RouteRequest): number | Refusal {
  return integerQuery(request, 'limit', { min: 1, max: limits.pageRowsMax, fallback: 100 })
}

/**
 * A time in the query: ISO 8601, Unix milliseconds or an HLC. Milliseconds mean the whole millisecond.
 * @returns undefined if absent; 400 if invalid, or absent though `required`
 */
export function momentParameter(request: RouteRequest, name: string, required: 'required'): Hlc | Refusal
export function momentParameter(request: RouteRequest, name: string): Hlc | undefined | Refusal
export function momentParameter(
  request: RouteRequest,
  name: string,
  required?: 'required',
): Hlc | undefined | Refusal {
  const text = request.query.get(name)
  if (text === null && required === undefined) return undefined
  const moment = momentUpper(text ?? '')
  if (moment !== undefined) return moment
  return faultyParameter(`?${name}`, momentExpected)
}

/** The options of a write in headers and query: If-Match, Idempotency-Key, ?signing=. */
export function writeOptions(request: RouteRequest): WriteOptions | Refusal {
  const options: WriteOptions = {}
  const { ifMatch, idempotencyKey } = request.headers
  if (ifMatch !== '') {
    const heads = headsOf(ifMatch)
    if (typeof heads !== 'string') return heads
    options.ifMatch = heads
  }
  if (idempotencyKey !== '') {
    const fault = idempotencyFault(idempotencyKey)
    if (fault !== undefined) return fault
    options.idempotency = { caller: request.principal.id, key: idempotencyKey }
  }
  const signing = signingQuery(request)
  if (signing === undefined) return options
  return typeof signing === 'string' ? { ...options, signing } : signing
}

/** Entity tags separated by commas (RFC 9110, 8.8.3). */
const tagList = /^[\s,]*(?:(?:W\/)?"[^"\x00-\x20\x7f]*"\s*(?:,[\s,]*|$))+$/

/**
 * The chain heads in `If-Match` (RFC 9110, 13.1.1): hashes separated by commas, or `*`. Tags are compared
 * strongly, so weak tags and tags that are not a hash are dropped; if none is left, no head matches.
 */
function headsOf(ifMatch: string): string | Refusal {
  if (ifMatch === '*') return ifMatch
  if (!tagList.test(ifMatch))
    return refuse('validation_failed', 'Expected If-Match to be quoted chain heads separated by commas, or *')
  const tags = [...ifMatch.matchAll(/(W\/)?"(?:sha256:)?([^"]*)"/g)]
  return tags.flatMap(([, weak, tag = '']) => (weak === undefined && headHash.test(tag) ? [tag] : [])).join()
}

const headHash = /^[0-9a-f]{64}$/

/** The schema of `?signing=`. */
export const Signed = Type.Enum(['record', 'group'], {
  description: 'Sign every record, or only the last one of each commit, which seals the records before it',
})

/** `?signing=`; undefined if absent. */
export function signingQuery(request: RouteRequest): Signing | undefined | Refusal {
  const text = request.query.get('signing')
  if (text === null) return undefined
  if (text === 'record' || text === 'group') return text
  return faultyParameter('?signing', 'Expected record or group')
}

function idempotencyFault(key: string): Refusal | undefined {
  if (key.length <= limits.idempotencyKeyCharsMax) return undefined
  return refuse(
    'validation_failed',
    `Expected an Idempotency-Key of at most ${limits.idempotencyKeyCharsMax} characters`,
  )
}

/** Encodes the values of a cursor; clients treat it as opaque. @param list the kind of list that it continues */
export function encodeCursor(list: string, value: readonly (number | string)[]): string {
  return Buffer.from(JSON.stringify([list, ...value])).toString('base64url')
}

/** Decodes a cursor of `count` numbers; undefined if it is invalid or continues another kind of list. */
export function decodeNumbers(cursor: string, list: string, count: number): number[] | undefined {
  const values = decoded(cursor, list)
  if (values?.length !== count) return undefined
  const numbers = values.filter(
    (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
  )
  return numbers.length === count ? numbers.map(Number) : undefined
}

/** Decodes a cursor of one string; undefined if it is invalid or continues another kind of list. */
export function decodeText(cursor: string, list: string): string | undefined {
  return decodeTexts(cursor, list, 1)?.[0]
}

/** Decodes a cursor of `count` strings; undefined if it is invalid or continues another kind of list. */
export function decodeTexts(cursor: string, list: string, count: number): string[] | undefined {
  const values = decoded(cursor, list)
  if (values?.length !== count) return undefined
  const texts = values.filter((value) => typeof value === 'string')
  return texts.length === count ? texts : undefined
}

function decoded(cursor: string, list: string): unknown[] | undefined {
  const text = fromBase64url(cursor)?.toString()
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) && value[0] === list ? value.slice(1) : undefined
  } catch {
    // Not JSON, so not a cursor of this server.
    return undefined
  }
}

/** 400 for an invalid cursor. */
export const badCursor: Refusal = faultyParameter('?cursor', 'Expected the next_cursor of an earlier page')

/** Whether a principal reaches every agent whose name begins with `prefix`, existing or not. */
export function reachesPrefix(agents: readonly string[], prefix: string): boolean {
  const prefixes = agents.filter((pattern) => pattern.endsWith('*'))
  return agents.length === 0 || (prefixes.length > 0 && reaches(prefixes, prefix))
}

/** Whether a principal has `admin:*` and is not limited to agents. */
export function isUnlimitedAdmin({ scopes, agents }: Principal): boolean {
  return scopes.has('admin:*') && agents.length === 0
}

/** The author of a command: the principal, and the first key of its lineage if that is another key. */
export function authorOf({ principal: { id, key } }: Pick<RouteRequest, 'principal'>): Author {
  return key === undefined || key.row.line === id ? { principal: id } : { principal: id, line: key.row.line }
}

/**
 * The one rule for which strands a principal reaches: 403 if the key is limited to other agents, if the token
 * and the agent belong to different namespaces, or for the audit strand without full access. Every route that
 * names a strand applies it. Within a strand, row policies restrict users (`withAccess`).
 */
export function agentRefusal(
  { principal }: Pick<RouteRequest, 'principal'>,
  agent: string,
): Refusal | undefined {
  const { agents, user } = principal
  if (agent === auditAgent && !isUnlimitedAdmin(principal)) {
    return refuse('forbidden', 'The audit strand requires a key with admin:* that is not limited to agents')
  }
  if (user !== undefined && !reachesAgent(user.namespace, agent)) {
    return refuse('forbidden', `This token is of another namespace than agent "${agent}"`)
  }
  if (reaches(agents, agent)) return undefined
  return refuse('forbidden', `This key does not reach agent "${agent}"`)
}

/** The same rule for routes that find strands themselves: streams of all agents, edges, found records. */
export function reachesStrand(principal: Principal, agent: string): boolean {
  return agentRefusal({ principal }, agent) === undefined
}

/**
 * Adds the access of a user, whose row policies apply, to a command; leaves commands of keys unchanged.
 * Changes the object in place, so the caller must not share it yet.
 */
export function withAccess<C extends object>(
  { principal }: Pick<RouteRequest, 'principal'>,
  command: C,
): C & { access?: UserAccess } {
  // A spread takes four times as long for each shape of command.
  return principal.user === undefined ? command : Object.assign(command, { access: principal.user.access })
}

/** The agent of a path, if the caller reaches it. */
export function reachableAgent(request: RouteRequest, text: string | undefined): string | Refusal {
  const agent = agentParameter(text)
  if (typeof agent !== 'string') return agent
  return agentRefusal(request, agent) ?? agent
}

/**
 * 403 for a key that is limited to agents, on routes about the whole server: it could create a key without
 * that limit, or learn about other agents.
 */
export function limitedRefusal({ principal }: RouteRequest): Refusal | undefined {
  if (principal.agents.length === 0) return undefined
  return refuse('forbidden', 'A key that is limited to agents cannot use this route')
}
