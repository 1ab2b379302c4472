import { assert } from '../../base/assert.js'
import { RefusedError, refuse, type Refusal } from '../../base/errors.js'
import { sentBy, type Outcome } from '../../protocol/messages.js'
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
import { admit, isWrite, type Admitted, type Placed } from './admit.js'
import { takeBody } from './body.js'
import { basicToo } from './answer-head.js'
import type { Exchange } from './exchange.js'
import { answerFile } from './file.js'
import type { Handling } from './handling.js'
import {
  holdBody,
  openRequest,
  readParameters,
  takeRequest,
  type HandlerRules,
  type OpenedRequest,
} from './head.js'
import type { HttpRequest, HttpResponse } from '../door/door.js'

/**
 * Makes the handler of a route: the life of one request. Each step gets what the ones before it found, and passes more
 * on to the next one or ends with a refusal (docs/ARCHITECTURE.md, The life of a request).
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
  const carryOut = (opened: OpenedRequest, parameters: string[] | undefined) => {
    const { response, exchange, head } = opened
    const addressOf = () => handling.rates.addressOf(response, head.headers)
    // Auth routes log it after they have waited, when the client may be gone and its address with it.
    const address = route.kind === 'auth' ? addressOf() : undefined
    const place: Placed = {
      head,
      parameters,
      writes,
      addressOf: address === undefined ? addressOf : () => address,
    }
    const goOn = (admitted: Admitted | Refusal | Answer) => {
      // Refused while it was admitted: its body takes too much memory.
      if (!exchange.open) return
      if ('code' in admitted) exchange.refuse(admitted)
      else if ('status' in admitted) exchange.answer(admitted)
      else {
        exchange.ownerOf = admitted.ownerOf
        const { principal } = admitted
        takeBody(exchange, { bodyBytesMax, head, principal, handling }, (body) =>
          guarded(exchange, handling, () => act(route, { exchange, admitted, body }, handling)),
        )
      }
    }
    guarded(exchange, handling, () => {
      const admitted = admit(route, place, handling)
      if (!(admitted instanceof Promise)) return goOn(admitted)
      // A token that is not cached yet is verified first; the body waits.
      holdBody(opened, rules)
      return admitted.then(goOn)
    })
  }
  return (response, request) => {
    watch.begin()
    const opened = openRequest(response, request, rules)
    if (route.kind === 'ingest' && opened.head.headers.fetchSite === '') opened.exchange.challenges = basicToo
    const parameters = readParameters(request, parameterCount)
    takeRequest(opened, rules, () => carryOut(opened, parameters))
  }
}

/** A request that is about to be carried out. */
interface ReadyRequest {
  exchange: Exchange
  admitted: Admitted
  /** Empty for routes that take no body, and for those that read it as it arrives. */
  body: Uint8Array
}

/**
 * Carries a request out and answers it: the one step in which the kinds of routes differ.
 * @returns a promise that resolves once it is answered, where that can fail on the way
 */
function act(route: Route, ready: ReadyRequest, handling: Handling): void | Promise<void> {
  const { exchange, admitted, body } = ready
  const { parameters: params, query, principal } = admitted
  const request: RouteRequest = { params, query, headers: admitted.head.headers, body, principal }
  // Row policies of the agents that a user's request asks for decide what its answer shows.
  const agents = principal.user === undefined ? undefined : new Set<string>()
  if (route.scope !== 'none') {
    exchange.onLarge = () => {
      const answer = handling.uploads.hold({ principal, owner: exchange.owner, agents }, () =>
        exchange.abort(),
      )
      return () => answer.release()
    }
  }
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

function runCommand(
  route: CommandRoute,
  { exchange, request, agents }: { exchange: Exchange } & Asking,
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
  return finishLater(exchange, handling.shards.ask(agent, command).then(toBody))
}

/** The direct way of most answers: the shard's text is sent as it is. */
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
  { exchange, admitted, request }: { exchange: Exchange; admitted: Admitted; request: RouteRequest },
  handling: Handling,
): void | Promise<void> {
  const { context } = handling.auth
  assert(context !== undefined, 'no auth route is entered while the add-on is off')
  if (exchange.headOnly && route.writes === true) {
    // HEAD is safe (RFC 9110, 9.2.1): looking at a link must not use it up.
    exchange.answer({ status: 204, body: '' })
    return
  }
  const { head, namespace, principal } = admitted
  // An id made by this server: one sent by the caller could be an e-mail, and would stay on the audit strand.
  const requestId = head.headers.requestId === '' ? exchange.requestId : handling.nextRequestId()
  const asked = {
    ...request,
    namespace,
    origin: { ip: admitted.addressOf(), userAgent: head.headers.userAgent, requestId },
    ...(principal.user !== undefined && { claims: principal.user.claims }),
  }
  return finishLater(exchange, route.handle(asked, context))
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
  // The answer to HEAD opens no stream.
  if (exchange.headOnly && !('code' in request)) exchange.begin(200, 'text/event-stream', [])
  else {
    exchange.onDone = ticket === null ? undefined : tickets.hold(ticket, principal)
    streams.open(exchange, request, principal)
  }
}

async function runHandler(
  route: HandlerRoute,
  { request, agents }: Asking,
  { context, coder }: Handling,
): Promise<Answer | Refusal> {
  const answer = await route.handle(request, contextFor({ request, agents }, context))
  if (route.compressed !== true || 'code' in answer) return answer
  return coder.code(answer, request.headers.acceptEncoding)
}

/** A request that is sent on to shards. */
interface Asking {
  request: RouteRequest
  /** For a user, the agents that it is sent for are added. */
  agents: Set<string> | undefined
}

/** The context of one request, which names its caller to the shards. */
function contextFor({ request, agents }: Asking, context: RouteContext): RouteContext {
  const { id } = request.principal
  return {
    ...context,
    ask(agent, command) {
      agents?.add(agent)
      return context.ask(agent, sentBy(id, command))
    },
    askAll: (command) => context.askAll(sentBy(id, command)),
    askShard: (shard, command) => context.askShard(shard, sentBy(id, command)),
    askFirst: (command) => context.askFirst(sentBy(id, command)),
  }
}

async function finishLater(exchange: Exchange, answering: Promise<Answer | Refusal>): Promise<void> {
  finish(exchange, await answering)
}

function finish(exchange: Exchange, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer)
  else exchange.answer(answer)
}

/** A bug in a route breaks its request and no other. */
function guarded(exchange: Exchange, handling: Handling, run: () => void | Promise<void>): void {
  try {
    run()?.catch((error: unknown) => exchange.refuse(failure(error, exchange, handling)))
  } catch (error) {
    exchange.refuse(failure(error, exchange, handling))
  }
}

/** The answer to an exception; a refusal by a thread pool is no bug, and its pool logs it. */
function failure(error: unknown, exchange: Exchange, handling: Handling): Refusal {
  if (error instanceof RefusedError) return error.refusal
  handling.onError(error, exchange.requestId)
  return internalError
}

const internalError = refuse('internal_error', 'The server failed; its log says why under the request id')
