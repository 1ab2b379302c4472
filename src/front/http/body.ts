import { withoutByteOrderMark } from '../../base/bytes.js'
import { GatheredBytes } from '../../base/gathered-bytes.js'
import { limits } from '../../base/limits/limits.js'
import { refuse, refuseCoding, type Refusal } from '../../base/errors.js'
import type { Principal } from '../routes/route.js'
import type { Exchange } from './exchange.js'
import type { FrontTurn } from './front-turn.js'
import type { RequestHead } from './head.js'
import type { OpenTransfers } from '../limits/transfers.js'

/** How to read the body of a route. */
export interface RouteBodyOptions {
  /** 0 if the route takes no body or streams it. */
  bodyBytesMax: number
  head: RequestHead
  principal: Principal
  handling: {
    transfers: OpenTransfers
    turn: FrontTurn
  }
}

const noBytes = new Uint8Array(0)

/**
 * Reads the JSON body of a route and passes it on without its byte order mark, or answers with an error: 401
 * if the credential ends before the body does, 413 too_large, 415 unsupported_media_type, 503 overloaded
 * while bodies take too much memory.
 * @param proceed called with the body
 */
export function readRouteBody(
  exchange: Exchange,
  { bodyBytesMax, ...taking }: RouteBodyOptions,
  proceed: (body: Uint8Array) => void,
): void {
  if (bodyBytesMax === 0) {
    proceed(noBytes)
    return
  }
  const { contentEncoding, contentType } = taking.head.headers
  collectBody(exchange, { ...taking, bytesMax: bodyBytesMax }, (body) => {
    if (body.length === 0) proceed(body)
    else if (contentEncoding !== '' && contentEncoding !== 'identity') exchange.refuse(coded)
    else if (!isJson(contentType))
      exchange.refuse(refuse('unsupported_media_type', 'Expected Content-Type application/json'))
    else proceed(withoutByteOrderMark(body))
  })
}

const coded = refuseCoding('identity', 'Expected no Content-Encoding: only ingest accepts gzip')

/** Whether a media type is JSON; a body without a type is treated as JSON. */
function isJson(contentType: string): boolean {
  return contentType === '' || contentType === 'application/json' || jsonType.test(contentType)
}

const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

interface Collecting extends Omit<RouteBodyOptions, 'bodyBytesMax'> {
  bytesMax: number
}

/**
 * Collects a whole body of at most `bytesMax` bytes and passes it on. Answers 413 to a larger one
 * immediately, and lets the library skip the rest: closing the connection would reset it, and the client
 * would never see the answer.
 */
function collectBody(
  exchange: Exchange,
  { head, bytesMax, principal, handling: { transfers, turn } }: Collecting,
  receive: (body: Uint8Array) => void,
): void {
  // Most bodies arrive in one part.
  let gathered: GatheredBytes | undefined
  let isReserved = false
  let isReceived = false
  const end = () => {
    gathered = undefined
    transfer.finish()
  }
  const refuseBody = (refusal: Refusal) => {
    if (isReceived) return
    end()
    exchange.refuse(refusal)
  }
  const transfer = transfers.begin({ principal, holder: exchange.holder }, refuseBody)
  exchange.onDisconnect(end)
  const bodyBytes = head.contentLength ?? bytesMax
  if (bodyBytes > bytesMax) {
    refuseBody(tooLarge(bytesMax))
    return
  }
  const take = (part: Uint8Array, last: boolean) => {
    if (!exchange.open) return
    if ((gathered?.length ?? 0) + part.length > bytesMax) {
      refuseBody(tooLarge(bytesMax))
      return
    }
    const isWhole = gathered === undefined && last
    if (isWhole && turn.takesBodies) {
      end()
      // A copy: the library reuses its buffer when this returns.
      receive(Buffer.from(part))
      return
    }
    // A complete body is also counted while it waits.
    gathered ??= new GatheredBytes({ memory: transfer, bytesMax: bodyBytes })
    if (!isReserved && gathered.length + part.length > limits.smallBodyBytesMax) {
      isReserved = true
      const waiting = Buffer.from(part)
      exchange.body.pause()
      void transfer.reserveWhenFree(bodyBytes).then((refusal) => {
        if (refusal === undefined) take(waiting, last)
        else refuseBody(refusal)
        exchange.body.resume()
      })
      return
    }
    gathered.add(part)
    if (!last || !exchange.open) return
    const complete = () => {
      const body = gathered?.take()
      isReceived = true
      // What is reserved stays counted until the answer, while the body is parsed and written.
      if (isReserved) exchange.onDone = end
      else end()
      if (body !== undefined && exchange.open) receive(body)
    }
    if (!isWhole && turn.takesBodies) complete()
    else turn.deferBody(exchange.holder, complete)
  }
  exchange.body.read(take)
}

/** 413 for a body over its limit. */
export function tooLarge(bytesMax: number): Refusal {
  return refuse('too_large', `Expected a body of at most ${bytesMax} bytes`)
}
