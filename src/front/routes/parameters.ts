import { Type } from 'typebox'
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
import type { Principal, RouteRequest, RequestHeaders } from './route.js'
import { hostname, networkInterfaces } from 'node:os'

/*
 * Reading of the parts of a request that many routes share: path parameters, query parameters and headers.
 */

const agentAddress = new RegExp(agentAddressPattern)
const agentName = new RegExp(agentNamePattern)

/** A fault of a path or query parameter; the pointer names it as `?name` or `:name`. */
export function faultyParameter(pointer: string, detail: string): Refusal {
  return refuse('validation_failed', detail, { faults: [{ pointer, code: 'validation_failed', detail }] })
}

/** The agent that a path parameter names; organisms' agents have `::` in their names. */
export function agentParameter(text: string | undefined): string | Refusal {
  if (text !== undefined && agentAddress.test(text)) return text
  return faultyParameter(':agent', 'Expected an agent name of 1 to 128 characters out of A-Z a-z 0-9 _ . -')
}

/** The name of a collection, which may emerge: so never one of an organism. */
export function collectionParameter(text: string | undefined): string | Refusal {
  if (text !== undefined && agentName.test(text)) return text
  return faultyParameter(
    ':name',
    'Expected a collection name of 1 to 128 characters out of A-Z a-z 0-9 _ . -',
  )
}

/** A record's hash, bare or with its prefix; gives the bare one. */
export function hashParameter(text: string | undefined, pointer: string): string | Refusal {
  const match = text === undefined ? null : /^(?:sha256:)?([0-9a-f]{64})$/.exec(text)
  return (
    match?.[1] ?? faultyParameter(pointer, 'Expected a record hash: 64 hex digits, with or without sha256:')
  )
}

/** A whole number within bounds; `fallback` when it is not there. */
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

/** The items of a list, between commas or each in a parameter of its own; undefined when it is not there. */
export function listQuery({ query }: Pick<RouteRequest, 'query'>, name: string): string[] | undefined {
  return query.has(name) ? query.getAll(name).flatMap((text) => text.split(',')) : undefined
}

/** The page size of a list. */
export function pageLimit(request: RouteRequest): number | Refusal {
  return integerQuery(request, 'limit', { min: 1, max: limits.pageRowsMax, fallback: 100 })
}

/**
 * A moment of the query: ISO 8601, Unix milliseconds or an HLC. One in milliseconds means the whole of that millisecond.
 * @returns undefined when it is not there; 400 when it is none, or is not there though `required`
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

/** What a write carries in its headers and query: If-Match, Idempotency-Key, ?signing=. */
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

/** Entity tags between commas (RFC 9110, 8.8.3). */
const tagList = /^[\s,]*(?:(?:W\/)?"[^"\x00-\x20\x7f]*"\s*(?:,[\s,]*|$))+$/

/**
 * The chain heads that `If-Match` names (RFC 9110, 13.1.1): hashes between commas, or `*`. Tags are compared strongly, so a weak
 * one names none, and neither does one that is no hash; of a list of such tags nothing is left, and no head matches.
 */
function headsOf(ifMatch: string): string | Refusal {
  if (ifMatch === '*') return ifMatch
  if (!tagList.test(ifMatch))
    return refuse('validation_failed', 'Expected If-Match to be chain heads in quotes, between commas, or *')
  const tags = [...ifMatch.matchAll(/(W\/)?"(?:sha256:)?([^"]*)"/g)]
  return tags.flatMap(([, weak, tag = '']) => (weak === undefined && headHash.test(tag) ? [tag] : [])).join()
}

const headHash = /^[0-9a-f]{64}$/

/** What `?signing=` is documented by. */
export const Signed = Type.Enum(['record', 'group'], {
  description: 'Sign every record, or the last of each commit, which seals the ones before it',
})

/** `?signing=`; undefined when it is not there. */
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

/** Packs what a cursor holds; clients hand it back unread. */
export function encodeCursor(value: readonly (number | string)[]): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** The numbers of a cursor, `count` of them; undefined when it is none of ours. */
export function decodeNumbers(cursor: string, count: number): number[] | undefined {
  const values = decoded(cursor)
  if (values?.length !== count) return undefined
  const numbers = values.filter(
    (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
  )
  return numbers.length === count ? numbers.map(Number) : undefined
}

/** The one text of a cursor; undefined when it is none of ours. */
export function decodeText(cursor: string): string | undefined {
  return decodeTexts(cursor, 1)?.[0]
}

/** The texts of a cursor, `count` of them; undefined when it is none of ours. */
export function decodeTexts(cursor: string, count: number): string[] | undefined {
  const values = decoded(cursor)
  if (values?.length !== count) return undefined
  const texts = values.filter((value) => typeof value === 'string')
  return texts.length === count ? texts : undefined
}

function decoded(cursor: string): unknown[] | undefined {
  const text = fromBase64url(cursor)?.toString()
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    // Not JSON: no cursor that this server made.
    return undefined
  }
}

/** 400 for a cursor that this route did not make. */
export const badCursor: Refusal = faultyParameter('?cursor', 'Expected the next_cursor of an earlier page')

/** Whether a principal may reach every agent whose name begins with `prefix`, there or not. */
export function reachesPrefix(agents: readonly string[], prefix: string): boolean {
  const prefixes = agents.filter((one) => one.endsWith('*'))
  return agents.length === 0 || (prefixes.length > 0 && reaches(prefixes, prefix))
}

/** Whether a principal may do everything everywhere. */
export function isUnlimitedAdmin({ scopes, agents }: Principal): boolean {
  return scopes.has('admin:*') && agents.length === 0
}

/** Who asks, as commands name it: the principal, and the first key of its line where that is another. */
export function authorOf({ principal: { id, key } }: Pick<RouteRequest, 'principal'>): Author {
  return key === undefined || key.row.line === id ? { principal: id } : { principal: id, line: key.row.line }
}

/** 403 when the key is limited to other agents, or the token is of another namespace than the agent. */
export function agentRefusal(
  { principal }: Pick<RouteRequest, 'principal'>,
  agent: string,
): Refusal | undefined {
  const { agents, user } = principal
  if (agent === auditAgent && !isUnlimitedAdmin(principal)) {
    return refuse('forbidden', 'Expected a key with admin:* that is not limited to agents')
  }
  if (user !== undefined && !reachesAgent(user.namespace, agent)) {
    return refuse('forbidden', `Expected a token of the namespace of agent "${agent}"`)
  }
  if (reaches(agents, agent)) return undefined
  return refuse('forbidden', `Expected a key that reaches agent "${agent}"`)
}

/**
 * Adds to a command, which nobody else holds yet, whose row policies decide about it, where a user asks; where a key
 * does, it stays as it is.
 */
export function withAccess<C extends object>(
  { principal }: Pick<RouteRequest, 'principal'>,
  command: C,
): C & { access?: UserAccess } {
  // A spread in its place takes four times as long, with each shape of command that comes by.
  return principal.user === undefined ? command : Object.assign(command, { access: principal.user.access })
}

/** The agent of a path that the caller may reach. */
export function reachableAgent(request: RouteRequest, text: string | undefined): string | Refusal {
  const agent = agentParameter(text)
  if (typeof agent !== 'string') return agent
  return agentRefusal(request, agent) ?? agent
}

/**
 * 403 for a key that is limited to agents, on routes about the whole server: it could make itself one that is not, or learn
 * what lies beyond them.
 */
export function limitedRefusal({ principal }: RouteRequest): Refusal | undefined {
  if (principal.agents.length === 0) return undefined
  return refuse('forbidden', 'Expected a key that is not limited to agents')
}

const foreign = refuse(
  'foreign_request',
  'Expected a credential, or a Host of this machine and no page of another site: the server is in an open mode',
)

/** Names and addresses of this machine, as `Host` has them. They are read once: open modes are for development. */
let names: ReadonlySet<string> | undefined

function namesOfMachine(): ReadonlySet<string> {
  const addresses = Object.values(networkInterfaces()).flatMap((list = []) =>
    list.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
  )
  return new Set(['localhost', '127.0.0.1', '[::1]', hostname().toLowerCase(), ...addresses])
}

/**
 * Refuses a request without a credential that an open mode would serve, but which a web page may have sent from elsewhere: one
 * whose `Host` is a foreign name that leads here (DNS rebinding), or that a browser says comes from another site.
 * @returns 403 foreign_request
 */
export function foreignRefusal({
  host,
  fetchSite,
}: Pick<RequestHeaders, 'host' | 'fetchSite'>): Refusal | undefined {
  names ??= namesOfMachine()
  const name = host.toLowerCase().replace(/:\d*$/, '')
  const isOwn = names.has(name) || name.endsWith('.localhost')
  return isOwn && fetchSite !== 'cross-site' ? undefined : foreign
}
