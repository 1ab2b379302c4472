import { assert } from '../../base/assert.js'
import { RefusedError, refuse, type Refusal } from '../../base/errors.js'
import { sentBy, type Outcome } from '../../protocol/messages.js'
import { readsBy } from '../../protocol/reader-tasks.js'
import { answerOf, replayedHeaders } from '../routes/answers.js'
import type { AuthRoute } from '../routes/auth-route.js'
import type {
  Answer,
  CommandRoute,
  FileRoute,
  HandlerRoute,
  Principal,
  RouteContext,
  RouteRequest,
  StreamRequest,
} from '../routes/route.js'
import { bodyBytesMaxOf, type Route } from '../routes/routes.js'
import { admit, isWrite, type AdmittedRequest, type RoutedRequest } from './admit.js'
import { readRouteBody } from './body.js'
import { bearerOrBasic } from './answer-head.js'
import type { Exchange } from './exchange.js'
import { answerFile } from './file.js'
import type { Handling } from './handling.js'
import {
  bufferBody,
  openRequest,
  readParameters,
  admitByRate,
  type HandlerRules,
  type OpenedRequest,
} from './head.js'
import type { HttpRequest, HttpResponse } from '../engine/http-listener.js'

/**
 * Creates the handler of a route: the life of one request. Each step gets the results of the previous steps,
 * and either continues with the next one or ends with a refusal (docs/ARCHITECTURE.md, The life of a
 * request).
 */
export function handlerOf(
  route: Route,
  handling: Handling,
  headOnly = false,
): (response: HttpResponse, request: HttpRequest) => void {
  const parameterCount = route.path.split('/:').length - 1
  const bodyBytesMax = bodyBytesMaxOf(route)
  const watch = handling.counts.watch(route)
  const writes = isWrite(route)
  const rules: HandlerRules = {
    opening: handling,
    watch,
    headOnly,
    takesBody: route.kind === 'ingest' || route.kind === 'import' || bodyBytesMax > 0,
    rate: route.kind === 'auth' ? 'auth' : 'global',
  }
  const handleOpened = (opened: OpenedRequest, parameters: string[] | undefined) => {
    const { response, exchange, head } = opened
    const addressOf = () => handling.rates.addressOf(response, head.headers)
    // Read now for auth routes: they log it later, when the client may have disconnected.
    const address = route.kind === 'auth' ? addressOf() : undefined
    const routed: RoutedRequest = {
      head,
      parameters,
      writes,
      addressOf: address === undefined ? addressOf : () => address,
    }
    const proceed = (admitted: AdmittedRequest | Refusal | Answer) => {
      // Already refused during admission, because its body takes too much memory.
      if (!exchange.open) return
      if ('code' in admitted) exchange.refuse(admitted)
      else if ('status' in admitted) exchange.answer(admitted)
      else {
        exchange.holderOf = admitted.holderOf
        const { principal } = admitted
        readRouteBody(exchange, { bodyBytesMax, head, principal, handling }, (body) =>
          guarded(exchange, handling, () => perform(route, { exchange, admitted, body }, handling)),
        )
      }
    }
    guarded(exchange, handling, () => {
      const admitted = admit(route, routed, handling)
      if (!(admitted instanceof Promise)) return proceed(admitted)
      // A token that is not cached is verified first; the body waits.
      bufferBody(opened, rules)
      return admitted.then(proceed)
    })
  }
  return (response, request) => {
    watch.begin()
    const opened = openRequest(response, request, rules)
    if (route.kind === 'ingest' && !opened.head.headers.isFromPage) opened.exchange.challenges = bearerOrBasic
    if (route.refusals !== undefined)
      opened.exchange.refusals = route.refusals(opened.head.headers.contentType)
    const parameters = readParameters(request, parameterCount)
    admitByRate(opened, rules, () => handleOpened(opened, parameters))
  }
}

interface ReadyRequest {
  exchange: Exchange
  admitted: AdmittedRequest
  /** Empty for routes that take no body, and for those that stream it. */
  body: Uint8Array
}

/**
 * Performs a request and answers it: the one step in which the kinds of routes differ.
 * @returns a promise that resolves when the request was answered, if that can fail later
 */
function perform(route: Route, admittedRequest: ReadyRequest, handling: Handling): void | Promise<void> {
  const { exchange, admitted, body } = admittedRequest
  const { parameters: params, query, principal } = admitted
  const request: RouteRequest = { params, query, headers: admitted.head.headers, body, principal }
  // The agents of a user's request, whose row policies apply to the answer.
  const agents = principal.user === undefined ? undefined : new Set<string>()
  if (route.scope !== 'none') exchange.onLarge = largeHolder(exchange, { principal, agents }, handling)
  switch (route.kind) {
    case 'command':
      return runCommand(route, { exchange, request, agents }, handling)
    case 'handler':
      return finishLater(exchange, runHandler(route, { request, agents }, handling))
    case 'file':
      return sendFile(exchange, route, answerFile(route, request, handling.pages))
    case 'auth':
      return runAuth(route, { exchange, admitted, request }, handling)
    case 'ingest':
      handling.ingest.receive(exchange, route.toIngest(request), principal)
      return
    case 'import':
      handling.imports.receive(exchange, route.toImport(request), principal)
      return
    case 'export':
      handling.exports.send(exchange, route.toExport(request), principal)
      return
    case 'stream':
      openStream(
        exchange,
        { request: route.toStream(request), ticket: query.get('ticket'), principal },
        handling,
      )
      return
  }
}

/** Lets a large answer be ended while it is sent, like an upload. */
function largeHolder(
  exchange: Exchange,
  { principal, agents }: { principal: Principal; agents: Set<string> | undefined },
  { transfers }: Handling,
): () => () => void {
  return () => {
    const answer = transfers.begin({ principal, holder: exchange.holder, agents }, () => exchange.abort())
    return () => answer.finish()
  }
}

function runCommand(
  route: CommandRoute,
  { exchange, request, agents }: { exchange: Exchange } & ShardRequest,
  handling: Handling,
): void | Promise<void> {
  const addressed = route.toCommand(request)
  if ('code' in addressed) {
    exchange.refuse(addressed)
    return
  }
  const { toBody } = route
  const { agent } = addressed
  agents?.add(agent)
  const command = sentBy(request.principal.id, addressed.command)
  if (toBody === undefined) {
    handling.shards.send(agent, command, (outcome) =>
      guarded(exchange, handling, () => reply(exchange, outcome)),
    )
    return
  }
  return finishLater(exchange, handling.shards.request(agent, command).then(toBody))
}

/** The fast path of most answers: sends the shard's text unchanged. */
function reply(exchange: Exchange, outcome: Outcome): void {
  if (outcome.kind !== 'reply') finish(exchange, answerOf(outcome))
  else if (outcome.replayed === true) exchange.answer({ ...outcome, headers: replayedHeaders })
  else exchange.answer(outcome)
}

function sendFile(exchange: Exchange, { headers }: FileRoute, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer, { headers })
  else exchange.answer(answer)
}

function runAuth(
  route: AuthRoute,
  { exchange, admitted, request }: { exchange: Exchange; admitted: AdmittedRequest; request: RouteRequest },
  handling: Handling,
): void | Promise<void> {
  const { context } = handling.auth
  assert(context !== undefined, 'auth routes are not reached while the add-on is disabled')
  if (exchange.headOnly && route.writes === true) {
    // HEAD is safe (RFC 9110, 9.2.1): it must not use up a link.
    exchange.answer({ status: 204, body: '' })
    return
  }
  const { head, namespace, principal } = admitted
  // An id generated by this server: one sent by the caller could be an e-mail address, and would stay on the
  // audit strand.
  const requestId = head.headers.requestId === '' ? exchange.requestId : handling.nextRequestId()
  const authRequest = {
    ...request,
    namespace,
    origin: { ip: admitted.addressOf(), userAgent: head.headers.userAgent, requestId },
    ...(principal.user !== undefined && { claims: principal.user.claims }),
  }
  return finishLater(exchange, route.handle(authRequest, context))
}

function openStream(
  exchange: Exchange,
  {
    request,
    ticket,
    principal,
  }: { request: StreamRequest | Refusal; ticket: string | null; principal: Principal },
  { streams, tickets }: Handling,
): void {
  // HEAD opens no stream.
  if (exchange.headOnly && !('code' in request)) exchange.begin(200, 'text/event-stream', [])
  else {
    exchange.onDone = ticket === null ? undefined : tickets.hold(ticket, principal)
    streams.open(exchange, request, principal)
  }
}

async function runHandler(
  route: HandlerRoute,
  { request, agents }: ShardRequest,
  handling: Handling,
): Promise<Answer | Refusal> {
  const answer = await route.handle(request, contextFor({ request, agents }, handling))
  if (route.compressed !== true || 'code' in answer) return answer
  return handling.coder.code(answer, request.headers.acceptEncoding)
}

interface ShardRequest {
  request: RouteRequest
  /** Collects the agents of a user's request. */
  agents: Set<string> | undefined
}

/** The context of one request, which adds the caller to every command and read. */
function contextFor({ request, agents }: ShardRequest, { context, readers }: Handling): RouteContext {
  const { id } = request.principal
  return {
    ...context,
    request(agent, command) {
      agents?.add(agent)
      return context.request(agent, sentBy(id, command))
    },
    requestAll: (command) => context.requestAll(sentBy(id, command)),
    requestShard: (shard, command) => context.requestShard(shard, sentBy(id, command)),
    requestFirst: (command) => context.requestFirst(sentBy(id, command)),
    read: readsBy(readers, id),
  }
}

async function finishLater(exchange: Exchange, answering: Promise<Answer | Refusal>): Promise<void> {
  finish(exchange, await answering)
}

function finish(exchange: Exchange, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer)
  else exchange.answer(answer)
}

/** Runs a step so that a bug in it breaks only this request. */
function guarded(exchange: Exchange, handling: Handling, run: () => void | Promise<void>): void {
  try {
    run()?.catch((error: unknown) => exchange.refuse(failure(error, exchange, handling)))
  } catch (error) {
    exchange.refuse(failure(error, exchange, handling))
  }
}

/** The answer to an exception. A refusal by a thread pool is not a bug, and the pool logs it. */
function failure(error: unknown, exchange: Exchange, handling: Handling): Refusal {
  if (error instanceof RefusedError) return error.refusal
  handling.onError(error, exchange.requestId)
  return internalError
}

const internalError = refuse(
  'internal_error',
  'Internal error: the server log has the cause under this request id',
)
