import { hash } from 'node:crypto'
import { organismNamespace, type Namespace } from '../../auth/namespace.js'
import { refuse, statusOf, type Fault, type Refusal } from '../../base/errors.js'
import { refuseAll, shortName } from '../../base/faults.js'
import { limits } from '../../base/limits/limits.js'
import { isBuiltIn, shardOfCredential } from './auth/api-key-sync.js'
import type { AuthRoute } from '../routes/auth-route.js'
import type { Answer, Principal } from '../routes/route.js'
import type { Route } from '../routes/routes.js'
import { isAnonymous, type Caller } from './credentials.js'
import type { Handling } from './handling.js'
import type { RequestHead } from './head.js'
import type { TicketUse } from './streams/tickets.js'

/** A request whose route was found. */
export interface RoutedRequest {
  head: RequestHead
  /** Path parameters; undefined if they are not percent-encoded UTF-8. */
  parameters: string[] | undefined
  writes: boolean
  addressOf(): string
}

/** A request that its caller is allowed to make. */
export interface AdmittedRequest extends RoutedRequest {
  parameters: string[]
  query: URLSearchParams
  principal: Principal
  namespace: Namespace
  /** The principal (or address) to whose quota the bytes of the body and the answer are counted. */
  holderOf(): string
}

/** The result of admission; an Answer comes from a route that serves while the auth add-on is disabled. */
type Admission = AdmittedRequest | Refusal | Answer

/**
 * Admits a request to its route. Checks that the server and the route are serving, what the path names, who
 * the caller is, what the caller is allowed to do, and that the server can write now. The body has not been
 * read.
 * @returns 400 validation_failed, 401, 402 license_required, 403, 404, 503 unavailable or 507 storage_full; a
 * promise if a token has to be verified first
 */
export function admit(
  route: Route,
  routed: RoutedRequest,
  handling: Handling,
): Admission | Promise<Admission> {
  const unavailable = notServing(route, handling)
  if (unavailable !== undefined) return unavailable
  // A route that ends access serves without a license, but reveals no more than other routes do.
  const unlicensed = route.kind === 'auth' ? handling.auth.refusal() : undefined
  const { parameters } = routed
  if (parameters === undefined)
    return unlicensed ?? refuse('validation_failed', 'Expected a percent-encoded UTF-8 path')
  const namespace = namespaceOf(route, parameters, handling)
  if (namespace === undefined)
    return unlicensed ?? refuse('organism_not_found', 'Organism not found: the path has no valid organism id')
  const grant = (principal: Principal | Refusal) => {
    if ('code' in principal)
      return unlicensed !== undefined && statusOf(principal) === 401 ? unlicensed : principal
    const query = queryOf(routed.head)
    const refusal =
      queryRefusal(route, query) ??
      (routed.writes && routed.head.headers.ifNoneMatch !== '' ? noSuchCondition : undefined) ??
      (routed.writes ? handling.writeRefusal() : undefined)
    if (refusal !== undefined) return refusal
    // Memory of callers without a credential is counted by address.
    const holderOf = isAnonymous(principal) ? routed.addressOf : () => principal.id
    const { head, writes, addressOf } = routed
    return { head, writes, addressOf, parameters, query, principal, namespace, holderOf }
  }
  const findCaller = () => callerOf(route, { routed, namespace }, handling)
  const caller = findCaller()
  if (caller instanceof Promise || uncertainty(caller, handling) !== undefined)
    return confirmedCaller(caller, findCaller, handling).then(grant)
  return grant(caller)
}

/**
 * The caller, confirmed by the shard that knows its credential. If that shard is being transferred, waits
 * until the transfer is over.
 */
async function confirmedCaller(
  found: Caller,
  findCaller: () => Caller,
  handling: Handling,
): Promise<Principal | Refusal> {
  const caller = await found
  if (uncertainty(caller, handling) === undefined) return caller
  await handling.shards.untilCurrent(decidingShard(caller, handling))
  const again = await findCaller()
  return uncertainty(again, handling) ?? again
}

/**
 * Why the credential cannot be confirmed now: keys and tokens may have been created or revoked at another
 * node.
 */
function uncertainty(caller: Principal | Refusal, handling: Handling): Refusal | undefined {
  return needsNoShard(caller) ? undefined : handling.shards.leaseRefusal(decidingShard(caller, handling))
}

/** The shard that knows whether a credential is valid; undefined for a refused caller. */
function decidingShard(caller: Principal | Refusal, { shards }: Handling): number | undefined {
  return 'code' in caller ? undefined : shardOfCredential(caller, shards)
}

/** Whether a route writes, and so is refused while the disk is full. */
export function isWrite(route: Route): boolean {
  if (route.whileFull === true) return false
  if (route.kind === 'auth') return route.method !== 'get' || route.writes === true
  return route.method !== 'get' && route.scope !== 'records:read' && route.scope !== 'none'
}

/** Why a route is not serving now, or its answer for that case. */
function notServing(route: Route, handling: Handling): Refusal | Answer | undefined {
  if (route.kind !== 'auth') return route.scope === 'none' ? undefined : handling.stopping()
  const inactive = handling.auth.refusal()
  const served = inactive?.code === 'license_required' && route.endsAccess === true
  const unavailable = handling.stopping() ?? (served ? undefined : inactive)
  return unavailable?.code === 'auth_disabled' ? (route.whileOff?.() ?? unavailable) : unavailable
}

/** The namespace of a route; undefined if the path has no valid organism id. */
function namespaceOf(route: Route, parameters: string[], { auth }: Handling): Namespace | undefined {
  if (route.kind !== 'auth' || route.organism === undefined) return auth.root
  return organismNamespace(parameters[0] ?? '')
}

function needsNoShard(caller: Principal | Refusal): boolean {
  return !('code' in caller) && isBuiltIn(caller)
}

/** The caller, if it is allowed to use the route. */
function callerOf(
  route: Route,
  { routed, namespace }: { routed: RoutedRequest; namespace: Namespace },
  { credentials, auth }: Handling,
): Caller {
  const { head } = routed
  const { authorization } = head.headers
  if (route.kind === 'auth') return authCallerOf(route, { authorization, namespace }, { credentials, auth })
  // Parsing thousands of query parameters takes time, so a credential is required first.
  const query = route.kind === 'stream' && authorization === '' ? queryOf(head) : emptyQuery
  const ticket = query.get('ticket')
  if (ticket === null) return credentials.authorize(authorization, route)
  return credentials.authorizeStream(ticket, ticketUse(route, routed, query), route)
}

/** The parameters of a stream that say where it starts, which change when a client reconnects. */
const startParameters = new Set(['ticket', 'since', 'last_event_id', 'lastEventId'])

/**
 * The address and the stream for which a ticket is used: every parameter that decides which records are shown.
 * A later use may start at another event.
 */
function ticketUse(
  { path }: Route,
  { parameters, addressOf }: RoutedRequest,
  query: URLSearchParams,
): TicketUse {
  const names = [...new Set(query.keys())].filter((name) => !startParameters.has(name)).sort()
  const stream = JSON.stringify([path, parameters, names.map((name) => [name, query.getAll(name).join()])])
  return { address: addressOf(), stream: hash('sha256', stream) }
}

/** The caller; 404 for a namespace that does not exist, before anything more expensive is done. */
function authCallerOf(
  { caller, organism }: AuthRoute,
  { authorization, namespace }: { authorization: string; namespace: Namespace },
  { credentials, auth }: Pick<Handling, 'credentials' | 'auth'>,
): Caller {
  const authorize = () => credentials.authorizeAuth(authorization, caller, namespace)
  const missing = organism === 'initialised' ? auth.missing(namespace) : undefined
  if (missing === undefined) return authorize()
  return missing.then(async (refusal) => {
    if (refusal === undefined) return authorize()
    // Without a license, only callers with a valid credential may learn which namespaces exist.
    const authorized = auth.refusal() === undefined ? refusal : await authorize()
    return 'code' in authorized ? authorized : refusal
  })
}

function queryOf({ query }: RequestHead): URLSearchParams {
  return query === '' ? emptyQuery : new URLSearchParams(query)
}

const emptyQuery = new URLSearchParams()

/** Otherwise `If-None-Match: *` would be ignored, and the write made anyway. */
const noSuchCondition = refuse('validation_failed', 'Expected If-Match as the condition of a write')

/**
 * 400 for unknown query parameters, and for repeated ones that are not lists. Otherwise a misspelt or ignored
 * parameter would silently change the answer.
 */
function queryRefusal({ docs, anyQuery }: Route, query: URLSearchParams): Refusal | undefined {
  if (query === emptyQuery || anyQuery === true) return undefined
  const known = Object.keys(docs.query ?? {})
  const seen = new Set<string>()
  const details = new Map<string, string>()
  for (const name of query.keys()) {
    if (details.size >= limits.faultsMax) break
    if (!known.includes(name)) {
      const expected = known.length === 0 ? 'none' : known.map((parameter) => `"${parameter}"`).join(', ')
      details.set(name, `Unknown query parameter "${shortName(name)}", expected ${expected}`)
    } else if (seen.has(name) && docs.lists?.includes(name) !== true)
      details.set(name, `Expected the query parameter "${name}" once`)
    else seen.add(name)
  }
  const [first, ...others] = [...details].map(([name, detail]): Fault => {
    return { pointer: `?${shortName(name)}`, code: 'validation_failed', detail }
  })
  return first && refuseAll(first, others)
}
