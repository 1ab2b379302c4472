import { refuse, type Refusal } from '../base/errors.js'
import type { Principal } from '../routes/route.js'
import { refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'
import { GatheredBytes } from './gathered-bytes.js'
import type { RequestHead } from './head.js'
import type { OpenUploads } from './uploads.js'

/** What a body is read for. */
export interface Taking {
  /** 0 where the route takes none, or takes it as it comes. */
  bodyBytesMax: number
  head: RequestHead
  principal: Principal
  uploads: OpenUploads
}

const noBytes = new Uint8Array(0)

/**
 * Reads the body that a route takes, which is JSON, and goes on. Otherwise it is answered: 401 where the credential ends
 * before the body does, 413 too_large, 415 unsupported_media_type.
 */
export function takeBody(
  exchange: Exchange,
  { bodyBytesMax, head, principal, uploads }: Taking,
  goOn: (body: Uint8Array) => void,
): void {
  if (bodyBytesMax === 0) {
    goOn(noBytes)
    return
  }
  const settled = uploads.hold(principal, (refusal) => refuseRest(exchange, refusal))
  exchange.onGone(settled)
  collectBody(exchange, { head, bytesMax: bodyBytesMax, settled }, (body) => {
    if (body.length > 0 && !isJson(head.headers.contentType))
      exchange.refuse(refuse('unsupported_media_type', 'Expected Content-Type application/json'))
    else goOn(body)
  })
}

/** JSON by its media type; a body without a type is taken for JSON. */
function isJson(contentType: string): boolean {
  return contentType === '' || contentType === 'application/json' || jsonType.test(contentType)
}

const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

/** What a body is collected by. */
interface Collecting {
  head: RequestHead
  bytesMax: number
  /** Called once when nothing more of it is collected, unless the client has gone. */
  settled(): void
}

/**
 * Collects a whole body of at most `bytesMax` bytes and hands it over once. A larger one is answered 413 at once. The
 * library passes over the rest of it: closing the connection would reset it, and the client would never see why.
 */
function collectBody(
  exchange: Exchange,
  { head, bytesMax, settled }: Collecting,
  receive: (body: Uint8Array) => void,
): void {
  const refuseLarge = () => {
    settled()
    exchange.refuse(tooLarge(bytesMax))
  }
  if (head.contentLength !== undefined && head.contentLength > bytesMax) {
    refuseLarge()
    return
  }
  const gathered = new GatheredBytes()
  exchange.onData((part, last) => {
    if (!exchange.open) return
    const bytes = new Uint8Array(part)
    if (gathered.length + bytes.length > bytesMax) {
      refuseLarge()
      return
    }
    if (!last) {
      gathered.add(bytes)
      return
    }
    settled()
    if (gathered.length > 0) gathered.add(bytes)
    // A copy: the library takes its buffer back when this returns.
    receive(gathered.length > 0 ? gathered.take() : Buffer.from(bytes))
  })
}

/** 413 for a body over its bound. */
export function tooLarge(bytesMax: number): Refusal {
  return refuse('too_large', `Expected a body of at most ${bytesMax} bytes`)
}
