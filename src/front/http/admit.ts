import { hash } from 'node:crypto'
import { organismNamespace, type Namespace } from '../../auth/namespace.js'
import { refuse, statusOf, type Fault, type Refusal } from '../../base/errors.js'
import { refuseAll, shortName } from '../../base/faults.js'
import { limits } from '../../base/limits/limits.js'
import { isOfSettingsAlone, shardOfCredential } from './auth/api-key-upkeep.js'
import type { AuthRoute } from '../routes/auth-route.js'
import type { Answer, Principal } from '../routes/route.js'
import { foreignRefusal } from '../routes/parameters.js'
import type { Route } from '../routes/routes.js'
import { isUnknown, type Caller } from './credentials.js'
import type { Handling } from './handling.js'
import type { RequestHead } from './head.js'
import type { TicketUse } from './streams/tickets.js'

/** A request whose route is found. */
export interface Placed {
  head: RequestHead
  /** Parameters of the path; undefined when they are not percent-encoded UTF-8. */
  parameters: string[] | undefined
  /** Whether its route writes. */
  writes: boolean
  /** The address of the caller, as text. */
  addressOf(): string
}

/** A request that its caller may make. */
export interface Admitted extends Placed {
  parameters: string[]
  query: URLSearchParams
  principal: Principal
  /** The namespace that an auth route is about. */
  namespace: Namespace
  /** The principal (or address) whose share of bytes in memory the body and the answer take. */
  ownerOf(): string
}

/** The result of admission; an Answer comes from a route that serves while the auth add-on is off. */
type Admission = Admitted | Refusal | Answer

/**
 * Admits a request to its route, of any kind: checks that the server and the route serve, what the path names, who the
 * caller is and whether they may, and whether anything can be written now. The body has not been read.
 * @returns 400 validation_failed, 401, 402 license_required, 403, 404, 503 unavailable or 507 storage_full; as a
 * promise where a token has to be verified first
 */
export function admit(route: Route, placed: Placed, handling: Handling): Admission | Promise<Admission> {
  const closed = notServing(route, handling)
  if (closed !== undefined) return closed
  // A route that ends access serves without a license, but tells no more than the others.
  const unlicensed = route.kind === 'auth' ? handling.auth.refusal() : undefined
  const { parameters } = placed
  if (parameters === undefined)
    return unlicensed ?? refuse('validation_failed', 'Expected a percent-encoded UTF-8 path')
  const namespace = namespaceOf(route, parameters, handling)
  if (namespace === undefined)
    return unlicensed ?? refuse('organism_not_found', 'Expected the id of an organism')
  const grant = (principal: Principal | Refusal) => {
    if ('code' in principal)
      return unlicensed !== undefined && statusOf(principal) === 401 ? unlicensed : principal
    const query = queryOf(placed.head)
    const refusal =
      (principal.id === 'open' && route.scope !== 'none' ? foreignRefusal(placed.head.headers) : undefined) ??
      queryRefusal(route, query) ??
      (placed.writes ? handling.writeRefusal() : undefined)
    if (refusal !== undefined) return refusal
    // What callers without a credential have in memory is counted by address.
    const ownerOf = isUnknown(principal) ? placed.addressOf : () => principal.id
    const { head, writes, addressOf } = placed
    return { head, writes, addressOf, parameters, query, principal, namespace, ownerOf }
  }
  const find = () => callerOf(route, { placed, namespace }, handling)
  const caller = find()
  if (caller instanceof Promise || whyUnknown(caller, handling) !== undefined)
    return knownCaller(caller, find, handling).then(grant)
  return grant(caller)
}

/** The caller as the shards that decide on it say now; where one of them moves, once that is over. */
async function knownCaller(
  found: Caller,
  find: () => Caller,
  handling: Handling,
): Promise<Principal | Refusal> {
  const caller = await found
  if (whyUnknown(caller, handling) === undefined) return caller
  await handling.shards.untilCurrent(decidingShard(caller, handling))
  const again = await find()
  return whyUnknown(again, handling) ?? again
}

/** Why it cannot be said who the caller is: keys and tokens may have been made, and have ended, at another node. */
function whyUnknown(caller: Principal | Refusal, handling: Handling): Refusal | undefined {
  return isOfSettings(caller) ? undefined : handling.shards.leaseRefusal(decidingShard(caller, handling))
}

/** The shard that says whether a credential is in force; undefined where any may. */
function decidingShard(caller: Principal | Refusal, { shards }: Handling): number | undefined {
  return 'code' in caller ? undefined : shardOfCredential(caller, shards)
}

/** Whether a route writes, which it cannot while the disk is full. */
export function isWrite(route: Route): boolean {
  if (route.whileFull === true) return false
  if (route.kind === 'auth') return route.method !== 'get' || route.writes === true
  return route.method !== 'get' && route.scope !== 'records:read' && route.scope !== 'none'
}

/** Why a route does not serve now, or what it answers even so. */
function notServing(route: Route, handling: Handling): Refusal | Answer | undefined {
  if (route.kind !== 'auth') return route.scope === 'none' ? undefined : handling.stopping()
  const inactive = handling.auth.refusal()
  const served = inactive?.code === 'license_required' && route.endsAccess === true
  const closed = handling.stopping() ?? (served ? undefined : inactive)
  return closed?.code === 'auth_disabled' ? (route.whileOff?.() ?? closed) : closed
}

/** The namespace that a route is about; undefined where the path names no organism. */
function namespaceOf(route: Route, parameters: string[], { auth }: Handling): Namespace | undefined {
  if (route.kind !== 'auth' || route.organism === undefined) return auth.root
  return organismNamespace(parameters[0] ?? '')
}

/** Whether a caller is known by the settings alone. */
function isOfSettings(caller: Principal | Refusal): boolean {
  return !('code' in caller) && isOfSettingsAlone(caller)
}

/** The caller, if it may use the route. */
function callerOf(
  route: Route,
  { placed, namespace }: { placed: Placed; namespace: Namespace },
  { credentials, auth }: Handling,
): Caller {
  const { head } = placed
  const { authorization } = head.headers
  if (route.kind === 'auth') return authCallerOf(route, { authorization, namespace }, { credentials, auth })
  // Thousands of query parameters take time to parse, so a credential is required first.
  const query = route.kind === 'stream' && authorization === '' ? queryOf(head) : emptyQuery
  const ticket = query.get('ticket')
  if (ticket === null) return credentials.authorize(authorization, route)
  return credentials.authorizeStream(ticket, ticketUse(route, placed, query), route)
}

/** Who opens which stream by a ticket; a later use may go on from another event. */
function ticketUse({ path }: Route, { parameters, addressOf }: Placed, query: URLSearchParams): TicketUse {
  const stream = JSON.stringify([path, parameters, query.getAll('agents').join(), query.get('filter')])
  return { address: addressOf(), stream: hash('sha256', stream) }
}

/** The caller; 404 for a namespace that does not exist, before anything that costs more. */
function authCallerOf(
  { caller, organism }: AuthRoute,
  { authorization, namespace }: { authorization: string; namespace: Namespace },
  { credentials, auth }: Pick<Handling, 'credentials' | 'auth'>,
): Caller {
  const authorize = () => credentials.authorizeAuth(authorization, caller, namespace)
  const missing = organism === 'initialised' ? auth.missing(namespace) : undefined
  if (missing === undefined) return authorize()
  return missing.then(async (gone) => {
    if (gone === undefined) return authorize()
    // Without a license only a valid credential learns which namespaces there are.
    const known = auth.refusal() === undefined ? gone : await authorize()
    return 'code' in known ? known : gone
  })
}

function queryOf({ query }: RequestHead): URLSearchParams {
  return query === '' ? emptyQuery : new URLSearchParams(query)
}

const emptyQuery = new URLSearchParams()

/**
 * 400 for query parameters that the route does not know, as for unknown members of a body, and for those that are given twice
 * and are no lists: otherwise one that is misspelt, or of which one value counts, would change the answer in silence.
 */
function queryRefusal({ docs, anyQuery }: Route, query: URLSearchParams): Refusal | undefined {
  if (query === emptyQuery || anyQuery === true) return undefined
  const known = Object.keys(docs.query ?? {})
  const seen = new Set<string>()
  const details = new Map<string, string>()
  for (const name of query.keys()) {
    if (details.size >= limits.faultsMax) break
    if (!known.includes(name)) {
      const takes = known.length === 0 ? 'none' : known.map((one) => `"${one}"`).join(', ')
      details.set(name, `Unknown query parameter "${shortName(name)}", expected ${takes}`)
    } else if (seen.has(name) && docs.lists?.includes(name) !== true)
      details.set(name, `Expected the query parameter "${name}" once`)
    else seen.add(name)
  }
  const [first, ...others] = [...details].map(([name, detail]): Fault => {
    return { pointer: `?${shortName(name)}`, code: 'validation_failed', detail }
  })
  return first && refuseAll(first, others)
}
