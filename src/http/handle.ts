import type { Refusal } from '../base/errors.js'
import { RefusedError, refuse } from '../base/errors.js'
import type { Shards } from '../dispatch/shards.js'
import type { Outcome } from '../protocol/messages.js'
import { answerOf, replayedHeaders } from '../routes/answers.js'
import type { AuthContext, AuthRequest, AuthRoute } from '../routes/auth-route.js'
import { organismNamespace, type Namespace } from '../auth/namespace.js'
import type {
  Answer,
  CommandRoute,
  HandlerRoute,
  Principal,
  Route,
  RouteContext,
  RouteRequest,
  StreamRequest,
} from '../routes/route.js'
import type { Admitted as Caller } from './admit.js'
import { collectBody } from './body.js'
import { refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'
import type { ExportSender } from './export.js'
import type { ImportReceiver } from './import/receiver.js'
import type { IngestReceiver } from './ingest/receiver.js'
import type { HttpMetrics } from './metrics.js'
import { openRequest, type Door, type Opening } from './opening.js'
import { readParameters, type RequestHead } from './request.js'
import type { StreamHub } from './streams/hub.js'
import type { OpenUploads } from './uploads.js'
import type { HttpRequest, HttpResponse } from './uws.js'

/** What requests are carried out with. */
export interface Handling extends Opening {
  shards: Shards
  context: RouteContext
  ingest: IngestReceiver
  exports: ExportSender
  imports: ImportReceiver
  streams: StreamHub
  uploads: OpenUploads
  metrics: HttpMetrics
  auth: AuthHandling
  /** Why no request is taken now; undefined while serving. */
  stopping(): Refusal | undefined
  /** Why no write is taken now. */
  writeRefusal(): Refusal | undefined
  onError(error: unknown, requestId: string): void
}

/** What auth routes are carried out with. */
export interface AuthHandling {
  /** Why none of them serves: 404 while the add-on is off, 402 without a license. */
  refusal(): Refusal | undefined
  /** The namespace of requests outside organisms. */
  root: Namespace
  /** Absent while the add-on is off. */
  context: AuthContext | undefined
  /** Why a namespace cannot be used; undefined at once for one that is known to be there. */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined>
}

const emptyBody = new Uint8Array(0)
const emptyQuery = new URLSearchParams()

/** Makes the handler of a route: admits, reads and carries out one request (house.md, The way of one write). */
export function handlerOf(
  route: Route,
  handling: Handling,
  headOnly = false,
): (response: HttpResponse, request: HttpRequest) => void {
  const parameterCount = route.path.split('/:').length - 1
  const watch = handling.metrics.watch(route)
  const writes = isWrite(route)
  const door: Door = {
    opening: handling,
    watch,
    headOnly,
    takesBody: takesBody(route),
    rate: route.kind === 'auth' ? 'auth' : 'global',
  }
  return (response, request) => {
    watch.begin()
    const opened = openRequest(response, request, door)
    if (opened === undefined) return
    const { exchange, head } = opened
    const parameters = readParameters(request, parameterCount)
    if (route.kind === 'auth') {
      const ip = handling.admission.addressOf(response, head.headers)
      openAuth(route, { exchange, head, parameters, ip, writes }, handling)
      return
    }
    const proceed = (routed: RouteRequest | Refusal) => {
      if ('code' in routed) {
        exchange.refuse(routed)
        return
      }
      const { principal } = routed
      // Nobody's answers are counted by their address.
      exchange.ownerOf =
        route.scope === 'none'
          ? () => handling.admission.addressOf(response, head.headers)
          : () => principal.id
      guarded(exchange, handling, () => carryOut(route, { exchange, head, request: routed }, handling))
    }
    const routed = admitted(route, { head, parameters, writes }, handling)
    if (routed instanceof Promise) proceedLater(exchange, handling, routed.then(proceed))
    else proceed(routed)
  }
}

/** A token that is not known yet is verified first; the body waits. */
function proceedLater(exchange: Exchange, handling: Handling, proceeding: Promise<void>): void {
  exchange.holdBody()
  proceeding.catch((error: unknown) => {
    exchange.refuse(failure(error, exchange, handling))
  })
}

/** What a throw is answered with; a thread that could not be had is no bug, and told of by its pool. */
function failure(error: unknown, exchange: Exchange, handling: Handling): Refusal {
  if (error instanceof RefusedError) return error.refusal
  handling.onError(error, exchange.requestId)
  return internalError
}

const internalError = refuse('internal_error', 'Expected the server to work; the request id is in its log')

function takesBody(route: Route): boolean {
  if (route.kind === 'ingest' || route.kind === 'import') return true
  return 'bodyBytesMax' in route && route.bodyBytesMax > 0
}

/** A bug in a route breaks its request and no other. */
function guarded(exchange: Exchange, handling: Handling, run: () => void): void {
  try {
    run()
  } catch (error) {
    exchange.refuse(failure(error, exchange, handling))
  }
}

function isWrite(route: Route): boolean {
  if (route.whileFull === true) return false
  if (route.kind === 'auth') return route.method !== 'get' || route.writes === true
  return route.method !== 'get' && route.scope !== 'records:read' && route.scope !== 'none'
}

/** The request as its route sees it; 400, 401, 403, 503 or 507 when it is not let in. */
function admitted(
  route: Route,
  { head, parameters, writes }: { head: RequestHead; parameters: string[] | undefined; writes: boolean },
  handling: Handling,
): RouteRequest | Refusal | Promise<RouteRequest | Refusal> {
  const stopping = route.scope === 'none' ? undefined : handling.stopping()
  if (stopping !== undefined) return stopping
  if (parameters === undefined) return refuse('validation_failed', 'Expected a percent-encoded UTF-8 path')
  const { authorization } = head.headers
  // Thousands of query parameters take their time, which nobody gets without a credential.
  const principal =
    route.kind === 'stream' && authorization === ''
      ? handling.admission.authorizeStream(authorization, queryOf(head).get('ticket'), route)
      : handling.admission.authorize(authorization, route)
  const requestOf = (one: Principal | Refusal) => {
    if ('code' in one) return one
    const readOnly = writes ? handling.writeRefusal() : undefined
    if (readOnly !== undefined) return readOnly
    return {
      params: parameters,
      query: queryOf(head),
      headers: head.headers,
      body: emptyBody,
      principal: one,
    }
  }
  return principal instanceof Promise ? principal.then(requestOf) : requestOf(principal)
}

function queryOf({ query }: RequestHead): URLSearchParams {
  return query === '' ? emptyQuery : new URLSearchParams(query)
}

interface Admitted {
  exchange: Exchange
  head: RequestHead
  request: RouteRequest
}

function carryOut(
  route: Exclude<Route, AuthRoute>,
  { exchange, head, request }: Admitted,
  handling: Handling,
): void {
  const { uploads } = handling
  switch (route.kind) {
    case 'command':
      if (route.bodyBytesMax === 0) runCommand(route, { exchange, request }, handling)
      else {
        readBody({ bodyBytesMax: route.bodyBytesMax, uploads }, { exchange, head, request }, () =>
          guarded(exchange, handling, () => runCommand(route, { exchange, request }, handling)),
        )
      }
      return
    case 'handler':
      if (route.bodyBytesMax === 0) void runHandler(route, { exchange, request }, handling)
      else {
        readBody(
          { bodyBytesMax: route.bodyBytesMax, uploads },
          { exchange, head, request },
          () => void runHandler(route, { exchange, request }, handling),
        )
      }
      return
    case 'ingest':
      handling.ingest.receive(exchange, route.toIngest(request), request.principal)
      return
    case 'import':
      handling.imports.receive(exchange, route.toImport(request), request.principal)
      return
    case 'export':
      handling.exports.send(exchange, route.toExport(request), request.principal)
      return
    case 'stream':
      openStream(exchange, { request: route.toStream(request), principal: request.principal }, handling)
      return
  }
}

function openStream(
  exchange: Exchange,
  { request, principal }: { request: StreamRequest | Refusal; principal: Principal },
  { streams }: Handling,
): void {
  // Of a stream that nobody reads there is nothing to watch.
  if (exchange.headOnly && !('code' in request)) exchange.begin(200, 'text/event-stream', [])
  else streams.open(exchange, request, principal)
}

/** What a body is read with. */
interface Reading {
  bodyBytesMax: number
  uploads: OpenUploads
}

/** Reads the body that a route takes, which is JSON, and goes on; 401 where the credential ends before the body does. */
function readBody(
  { bodyBytesMax, uploads }: Reading,
  { exchange, head, request }: Admitted,
  goOn: () => void,
): void {
  const settled = uploads.hold(request.principal, (refusal) => refuseRest(exchange, refusal))
  exchange.onGone(settled)
  collectBody(exchange, { head, bytesMax: bodyBytesMax, settled }, (body) => {
    if (body.length > 0 && !isJson(head.headers.contentType)) {
      exchange.refuse(refuse('unsupported_media_type', 'Expected Content-Type application/json'))
      return
    }
    request.body = body
    goOn()
  })
}

/** JSON by its media type; a body without a type is taken for JSON. */
function isJson(contentType: string): boolean {
  return contentType === '' || contentType === 'application/json' || jsonType.test(contentType)
}

const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

function runCommand(
  route: CommandRoute,
  { exchange, request }: { exchange: Exchange; request: RouteRequest },
  handling: Handling,
): void {
  const addressed = route.toCommand(request)
  if ('code' in addressed) {
    exchange.refuse(addressed)
    return
  }
  const { toBody } = route
  handling.shards.send(addressed.agent, addressed.command, (outcome) =>
    guarded(exchange, handling, () => {
      if (toBody === undefined) reply(exchange, outcome)
      else finish(exchange, toBody(outcome))
    }),
  )
}

/** The straight way of most answers: the shard's text goes out as it is. */
function reply(exchange: Exchange, outcome: Outcome): void {
  if (outcome.kind !== 'reply') finish(exchange, answerOf(outcome))
  else if (outcome.replayed === true) exchange.answer({ ...outcome, headers: replayedHeaders })
  else exchange.answer(outcome)
}

function runHandler(
  route: HandlerRoute,
  { exchange, request }: { exchange: Exchange; request: RouteRequest },
  handling: Handling,
): Promise<void> {
  return runAsync(() => route.handle(request, handling.context), exchange, handling)
}

async function runAsync(
  run: () => Promise<Answer | Refusal>,
  exchange: Exchange,
  handling: Handling,
): Promise<void> {
  try {
    finish(exchange, await run())
  } catch (error) {
    exchange.refuse(failure(error, exchange, handling))
  }
}

function finish(exchange: Exchange, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer)
  else exchange.answer(answer)
}

interface AuthOpening {
  exchange: Exchange
  head: RequestHead
  parameters: string[] | undefined
  ip: string
  writes: boolean
}

/** Admits one request of an auth route and carries it out (contract.md 6). */
function openAuth(route: AuthRoute, opening: AuthOpening, handling: Handling): void {
  const { exchange, head, parameters, ip, writes } = opening
  const { root, context } = handling.auth
  const inactive = handling.auth.refusal()
  const open = inactive?.code === 'license_required' && route.endsAccess === true
  const refusal = handling.stopping() ?? (open ? undefined : inactive)
  if (refusal?.code === 'auth_disabled' && route.whileOff !== undefined) {
    exchange.answer(route.whileOff())
    return
  }
  if (refusal !== undefined || context === undefined || parameters === undefined) {
    exchange.refuse(refusal ?? refuse('validation_failed', 'Expected a percent-encoded UTF-8 path'))
    return
  }
  const namespace = route.organism === undefined ? root : organismNamespace(parameters[0] ?? '')
  if (namespace === undefined) {
    exchange.refuse(refuse('organism_not_found', 'Expected the id of an organism'))
    return
  }
  const { authorization, userAgent } = head.headers
  const proceed = (principal: Principal | Refusal) => {
    const readOnly = writes ? handling.writeRefusal() : undefined
    if ('code' in principal || readOnly !== undefined) {
      exchange.refuse('code' in principal ? principal : (readOnly ?? internalError))
      return
    }
    exchange.ownerOf = () => principal.id
    const request: AuthRequest = {
      params: parameters,
      query: queryOf(head),
      headers: head.headers,
      body: emptyBody,
      principal,
      namespace,
      origin: { ip, userAgent, requestId: ownRequestId(exchange, head, handling) },
      ...(principal.user !== undefined && { claims: principal.user.claims }),
    }
    if (exchange.headOnly && route.writes === true) {
      // HEAD is safe (RFC 9110, 9.2.1): whoever only looks at a link uses nothing up.
      exchange.answer({ status: 204, body: '' })
      return
    }
    const run = () => void runAsync(() => route.handle(request, context), exchange, handling)
    if (route.bodyBytesMax === 0) run()
    else
      readBody(
        { bodyBytesMax: route.bodyBytesMax, uploads: handling.uploads },
        { exchange, head, request },
        run,
      )
  }
  const principal = callerOf(route, { authorization, namespace }, handling)
  if (principal instanceof Promise) proceedLater(exchange, handling, principal.then(proceed))
  else guarded(exchange, handling, () => proceed(principal))
}

/** An id that this server made: what a caller sent as one could be an e-mail, and would stay on the audit strand. */
function ownRequestId({ requestId }: Exchange, { headers }: RequestHead, handling: Handling): string {
  return headers.requestId === '' ? requestId : handling.nextRequestId()
}

/** Who asks of which namespace; 404 for one that is not there, before anything that costs more. */
function callerOf(
  { caller, organism }: AuthRoute,
  { authorization, namespace }: { authorization: string; namespace: Namespace },
  { admission, auth }: Handling,
): Caller {
  const admit = (missing: Refusal | undefined) =>
    missing ?? admission.authorizeAuth(authorization, caller, namespace)
  const missing = organism === 'initialised' ? auth.missing(namespace) : undefined
  return missing === undefined ? admit(undefined) : missing.then(admit)
}
