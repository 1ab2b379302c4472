import { refuse } from '../base/errors.js'
import type { Admission } from './admit.js'
import { Exchange, type ExchangeWatch } from './exchange.js'
import { readHead, type RequestHead } from './request.js'
import type { UnsentBytes } from './unsent.js'
import type { HttpRequest, HttpResponse } from './uws.js'

/** What requests are opened with. */
export interface Opening {
  admission: Admission
  corsOrigins: ReadonlySet<string>
  /** Bytes of answers that wait for their readers. */
  unsent: UnsentBytes
  nextRequestId(): string
}

/** How the requests of one handler are opened: made once, not for each. */
export interface Door {
  opening: Opening
  watch: ExchangeWatch
  /** Answers to HEAD: no body goes out. */
  headOnly: boolean
  /** Whether a body can belong to the request; a chunked one is refused at once where it cannot. */
  takesBody: boolean
  /** Which rates count: that of every request, or those of auth routes beside it (docs/OPERATIONS.md). */
  rate: 'global' | 'auth'
}

/** A request whose head is well-formed and whose address has not asked too much. */
export interface OpenedRequest {
  exchange: Exchange
  head: RequestHead
}

/**
 * Opens the exchange of a request, before anything else is done with it: the rate of its address counts first, of
 * malformed requests too.
 * @returns undefined when it is answered already: 429 rate_limited; 400 malformed_request, and its connection ends at
 * once (docs/SECURITY.md)
 */
export function openRequest(
  response: HttpResponse,
  request: HttpRequest,
  { opening, watch, headOnly, takesBody, rate }: Door,
): OpenedRequest | undefined {
  const head = readHead(request, opening.admission)
  const { requestId, origin } = head.headers
  const malformed = head.fault !== undefined
  const exchange = new Exchange(
    response,
    {
      requestId: requestId === '' || malformed ? opening.nextRequestId() : requestId,
      allowedOrigin: origin !== '' && !malformed && opening.corsOrigins.has(origin) ? origin : '',
      headOnly,
      // uWebSockets.js takes extensions of chunk sizes for digits and trailers for a next request, and checks little of
      // what ends a chunk. So where a chunked body ends two readers may disagree, and nothing may follow it.
      isLast: head.chunked || malformed,
      isKept: !head.closes,
      unsent: opening.unsent,
    },
    watch,
  )
  const { refusal, headers } = opening.admission.limit(response, head.headers, rate === 'auth')
  exchange.rate = headers
  if (refusal !== undefined) exchange.refuse(refusal)
  else if (head.fault !== undefined)
    exchange.refuse(refuse('malformed_request', head.fault), { closing: true })
  else if (head.chunked && !takesBody) exchange.refuse(unwantedBody)
  else return { exchange, head }
  return undefined
}

const unwantedBody = refuse('malformed_request', 'Expected no body: this method and path take none')
