import type { Refusal } from '../base/errors.js'
import { refuse } from '../base/errors.js'
import type { Shards } from '../dispatch/shards.js'
import type { Outcome } from '../protocol/messages.js'
import { answerOf, replayedHeaders } from '../routes/answers.js'
import type {
  Answer,
  CommandRoute,
  HandlerRoute,
  Route,
  RouteContext,
  RouteRequest,
} from '../routes/route.js'
import type { Admission } from './admit.js'
import { collectBody } from './body.js'
import { Exchange, type ExchangeWatch } from './exchange.js'
import type { ExportSender } from './export.js'
import type { IngestReceiver } from './ingest.js'
import type { HttpMetrics } from './metrics.js'
import { readHead, readParameters, type RequestHead } from './request.js'
import type { StreamHub } from './stream-hub.js'
import type { HttpRequest, HttpResponse } from './uws.js'

/** What requests are carried out with. */
export interface Handling {
  admission: Admission
  shards: Shards
  context: RouteContext
  ingest: IngestReceiver
  exports: ExportSender
  streams: StreamHub
  metrics: HttpMetrics
  corsOrigins: ReadonlySet<string>
  /** Why no request is taken now; undefined while serving. */
  stopping(): Refusal | undefined
  /** Why no write is taken now. */
  writeRefusal(): Refusal | undefined
  nextRequestId(): string
  onError(error: unknown, requestId: string): void
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
  return (response, request) => {
    watch.begin()
    const head = readHead(request)
    const exchange = openExchange(response, head, { handling, watch, headOnly })
    if (typeof head === 'string') {
      exchange.refuse(refuse('malformed_request', head), { closing: 'at once' })
      return
    }
    const limited = handling.admission.limit(response, head.headers)
    if (limited !== undefined) {
      exchange.refuse(limited.refusal, { headers: limited.headers })
      return
    }
    const parameters = readParameters(request, parameterCount)
    const routed = admitted(route, { head, parameters, writes }, handling)
    if ('code' in routed) exchange.refuse(routed)
    else guarded(exchange, handling, () => carryOut(route, { exchange, head, request: routed }, handling))
  }
}

/** Answers that are made whole can be given without their body; streams and exports cannot. */
export function answersHead({ method, kind }: Route): boolean {
  return method === 'get' && (kind === 'command' || kind === 'handler')
}

/** A bug in a route breaks its request and no other. */
function guarded(exchange: Exchange, handling: Handling, run: () => void): void {
  try {
    run()
  } catch (error) {
    handling.onError(error, exchange.requestId)
    exchange.refuse(refuse('internal_error', 'Expected the server to work; the request id is in its log'))
  }
}

/** The exchange of a request, with the id and the origin that its answer carries. */
export function openExchange(
  response: HttpResponse,
  head: RequestHead | string,
  { handling, watch, headOnly }: { handling: Handling; watch: ExchangeWatch; headOnly?: boolean },
): Exchange {
  const headers = typeof head === 'string' ? undefined : head.headers
  const requestId =
    headers === undefined || headers.requestId === '' ? handling.nextRequestId() : headers.requestId
  const origin = headers?.origin ?? ''
  const allowedOrigin = origin !== '' && handling.corsOrigins.has(origin) ? origin : ''
  return new Exchange(response, { requestId, allowedOrigin, headOnly: headOnly === true }, watch)
}

function isWrite(route: Route): boolean {
  if (route.whileFull === true) return false
  return route.method !== 'get' && route.scope !== 'records:read' && route.scope !== 'none'
}

/** The request as its route sees it; 400, 401, 403, 503 or 507 when it is not let in. */
function admitted(
  route: Route,
  { head, parameters, writes }: { head: RequestHead; parameters: string[] | undefined; writes: boolean },
  handling: Handling,
): RouteRequest | Refusal {
  const stopping = route.scope === 'none' ? undefined : handling.stopping()
  if (stopping !== undefined) return stopping
  if (parameters === undefined) return refuse('validation_failed', 'Expected a percent-encoded UTF-8 path')
  const query = head.query === '' ? emptyQuery : new URLSearchParams(head.query)
  const { authorization } = head.headers
  const principal =
    route.kind === 'stream'
      ? handling.admission.authorizeStream(authorization, query.get('ticket'), route.scope)
      : handling.admission.authorize(authorization, route.scope)
  if ('code' in principal) return principal
  const readOnly = writes ? handling.writeRefusal() : undefined
  if (readOnly !== undefined) return readOnly
  return { params: parameters, query, headers: head.headers, body: emptyBody, principal }
}

interface Admitted {
  exchange: Exchange
  head: RequestHead
  request: RouteRequest
}

function carryOut(route: Route, { exchange, head, request }: Admitted, handling: Handling): void {
  switch (route.kind) {
    case 'command':
      if (route.bodyBytesMax === 0) runCommand(route, { exchange, request }, handling)
      else {
        readBody(route, { exchange, head, request }, () =>
          guarded(exchange, handling, () => runCommand(route, { exchange, request }, handling)),
        )
      }
      return
    case 'handler':
      if (route.bodyBytesMax === 0) void runHandler(route, { exchange, request }, handling)
      else {
        readBody(
          route,
          { exchange, head, request },
          () => void runHandler(route, { exchange, request }, handling),
        )
      }
      return
    case 'ingest':
      handling.ingest.receive(exchange, route.toIngest(request), request.principal)
      return
    case 'export':
      handling.exports.send(exchange, route.toExport(request))
      return
    case 'stream':
      handling.streams.open(exchange, route.toStream(request), request.principal)
      return
  }
}

/** Reads the body that a route takes, which is JSON, and goes on. */
function readBody(
  { bodyBytesMax }: { bodyBytesMax: number },
  { exchange, head, request }: Admitted,
  goOn: () => void,
): void {
  collectBody(exchange, { head, bytesMax: bodyBytesMax }, (body) => {
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
  handling.shards.send(addressed.agent, addressed.command, (outcome) => {
    if (toBody === undefined) reply(exchange, outcome)
    else finish(exchange, toBody(outcome))
  })
}

/** The straight way of most answers: the shard's text goes out as it is. */
function reply(exchange: Exchange, outcome: Outcome): void {
  if (outcome.kind !== 'reply') finish(exchange, answerOf(outcome))
  else if (outcome.replayed === true) exchange.answer({ ...outcome, headers: replayedHeaders })
  else exchange.answer(outcome)
}

async function runHandler(
  route: HandlerRoute,
  { exchange, request }: { exchange: Exchange; request: RouteRequest },
  handling: Handling,
): Promise<void> {
  try {
    finish(exchange, await route.handle(request, handling.context))
  } catch (error) {
    handling.onError(error, exchange.requestId)
    exchange.refuse(refuse('internal_error', 'Expected the server to work; the request id is in its log'))
  }
}

function finish(exchange: Exchange, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer)
  else exchange.answer(answer)
}
