import { refuse } from '../base/errors.js'
import type { Admission } from './admit.js'
import { Exchange, type ExchangeWatch } from './exchange.js'
import { readHead, type RequestHead } from './request.js'
import type { HttpRequest, HttpResponse } from './uws.js'

/** What requests are opened with. */
export interface Opening {
  admission: Admission
  corsOrigins: ReadonlySet<string>
  nextRequestId(): string
}

/** How the requests of one handler are opened: made once, not for each. */
export interface Door {
  opening: Opening
  watch: ExchangeWatch
  /** Answers to HEAD: no body goes out. */
  headOnly: boolean
  /** Which rates count: that of every request, those of auth routes beside it, or none (contract.md 2.5). */
  rate: 'global' | 'auth' | 'none'
}

/** A request whose head is well-formed and whose address has not asked too much. */
export interface OpenedRequest {
  exchange: Exchange
  head: RequestHead
}

/**
 * Opens the exchange of a request, before anything else is done with it.
 * @returns undefined when it is answered already: 400 malformed_request, and its connection ends at once (contract.md
 * 2.3); 429 rate_limited
 */
export function openRequest(
  response: HttpResponse,
  request: HttpRequest,
  { opening, watch, headOnly, rate }: Door,
): OpenedRequest | undefined {
  const head = readHead(request, opening.admission)
  if (typeof head === 'string') {
    const about = { requestId: opening.nextRequestId(), allowedOrigin: '', headOnly, isLast: false }
    const exchange = new Exchange(response, about, watch)
    exchange.refuse(refuse('malformed_request', head), { closing: 'at once' })
    return undefined
  }
  const { requestId, origin } = head.headers
  const about = {
    requestId: requestId === '' ? opening.nextRequestId() : requestId,
    allowedOrigin: origin !== '' && opening.corsOrigins.has(origin) ? origin : '',
    headOnly,
    // uWebSockets.js takes extensions of chunk sizes for digits and trailers for a next request, and checks little of
    // what ends a chunk. So where a chunked body ends two readers may disagree, and nothing may follow it.
    isLast: head.chunked,
  }
  const exchange = new Exchange(response, about, watch)
  const limited =
    rate === 'none' ? undefined : opening.admission.limit(response, head.headers, rate === 'auth')
  if (limited === undefined) return { exchange, head }
  exchange.refuse(limited.refusal, { headers: limited.headers })
  return undefined
}
