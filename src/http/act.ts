import { assert } from '../base/assert.js'
import type { Refusal } from '../base/errors.js'
import type { Outcome } from '../protocol/messages.js'
import { answerOf, replayedHeaders } from '../routes/answers.js'
import type { AuthRoute } from '../routes/auth-route.js'
import type { Answer, CommandRoute, Principal, RouteRequest, StreamRequest } from '../routes/route.js'
import type { Route } from '../routes/routes.js'
import type { Admitted } from './admit.js'
import type { Exchange } from './exchange.js'
import { guarded } from './guarded.js'
import type { Handling } from './handling.js'

/** A request that is about to be carried out. */
export interface Ready {
  exchange: Exchange
  admitted: Admitted
  /** Empty for routes that take none, and for those that take it as it comes. */
  body: Uint8Array
}

/**
 * Carries a request out and answers it: the one step in which the kinds of routes differ.
 * @returns what resolves when it is answered, where that can fail on the way
 */
export function act(route: Route, ready: Ready, handling: Handling): void | Promise<void> {
  const { exchange, admitted, body } = ready
  const { parameters: params, query, principal } = admitted
  const request: RouteRequest = { params, query, headers: admitted.head.headers, body, principal }
  switch (route.kind) {
    case 'command':
      return runCommand(route, { exchange, request }, handling)
    case 'handler':
      return finishLater(exchange, route.handle(request, handling.context))
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
      openStream(exchange, { request: route.toStream(request), principal }, handling)
      return
  }
}

function runCommand(
  route: CommandRoute,
  { exchange, request }: { exchange: Exchange; request: RouteRequest },
  handling: Handling,
): void | Promise<void> {
  const addressed = route.toCommand(request)
  if ('code' in addressed) {
    exchange.refuse(addressed)
    return
  }
  const { toBody } = route
  const { agent, command } = addressed
  if (toBody === undefined) {
    handling.shards.send(agent, command, (outcome) =>
      guarded(exchange, handling, () => reply(exchange, outcome)),
    )
    return
  }
  return finishLater(exchange, handling.shards.ask(agent, command).then(toBody))
}

/** The straight way of most answers: the shard's text goes out as it is. */
function reply(exchange: Exchange, outcome: Outcome): void {
  if (outcome.kind !== 'reply') finish(exchange, answerOf(outcome))
  else if (outcome.replayed === true) exchange.answer({ ...outcome, headers: replayedHeaders })
  else exchange.answer(outcome)
}

function runAuth(
  route: AuthRoute,
  { exchange, admitted, request }: { exchange: Exchange; admitted: Admitted; request: RouteRequest },
  handling: Handling,
): void | Promise<void> {
  const { context } = handling.auth
  assert(context !== undefined, 'no auth route is entered while the add-on is off')
  if (exchange.headOnly && route.writes === true) {
    // HEAD is safe (RFC 9110, 9.2.1): whoever only looks at a link uses nothing up.
    exchange.answer({ status: 204, body: '' })
    return
  }
  const { head, namespace, principal } = admitted
  // An id that this server made: what a caller sent as one could be an e-mail, and would stay on the audit strand.
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
  { request, principal }: { request: StreamRequest | Refusal; principal: Principal },
  { streams }: Handling,
): void {
  // Of a stream that nobody reads there is nothing to watch.
  if (exchange.headOnly && !('code' in request)) exchange.begin(200, 'text/event-stream', [])
  else streams.open(exchange, request, principal)
}

async function finishLater(exchange: Exchange, answering: Promise<Answer | Refusal>): Promise<void> {
  finish(exchange, await answering)
}

function finish(exchange: Exchange, answer: Answer | Refusal): void {
  if ('code' in answer) exchange.refuse(answer)
  else exchange.answer(answer)
}
