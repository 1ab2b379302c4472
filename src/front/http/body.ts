import { withoutMark } from '../../base/bytes.js'
import { GatheredBytes } from '../../base/gathered-bytes.js'
import { refuse, refuseCoding, type Refusal } from '../../base/errors.js'
import type { Principal } from '../routes/route.js'
import { refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'
import type { FrontTurn } from './front-turn.js'
import type { RequestHead } from './head.js'
import type { OpenUploads } from '../limits/uploads.js'

/** How a body is read. */
export interface Taking {
  /** 0 if the route takes no body, or reads it as it arrives. */
  bodyBytesMax: number
  head: RequestHead
  principal: Principal
  handling: {
    uploads: OpenUploads
    /** The time that the front has for complete bodies. */
    turn: FrontTurn
  }
}

const noBytes = new Uint8Array(0)

/**
 * Reads the body of a route, which is JSON, and goes on with the request without its byte order mark; or answers it: 401 if the credential ends
 * before the body does, 413 too_large, 415 unsupported_media_type, 503 overloaded while bodies take too much memory.
 */
export function takeBody(
  exchange: Exchange,
  { bodyBytesMax, ...taking }: Taking,
  goOn: (body: Uint8Array) => void,
): void {
  if (bodyBytesMax === 0) {
    goOn(noBytes)
    return
  }
  const { contentEncoding, contentType } = taking.head.headers
  collectBody(exchange, { ...taking, bytesMax: bodyBytesMax }, (body) => {
    if (body.length === 0) goOn(body)
    else if (contentEncoding !== '' && contentEncoding !== 'identity') exchange.refuse(coded)
    else if (!isJson(contentType))
      exchange.refuse(refuse('unsupported_media_type', 'Expected Content-Type application/json'))
    else goOn(withoutMark(body))
  })
}

const coded = refuseCoding('identity', 'Expected no Content-Encoding; ingest takes gzip')

/** JSON by its media type; a body without a type is taken for JSON. */
function isJson(contentType: string): boolean {
  return contentType === '' || contentType === 'application/json' || jsonType.test(contentType)
}

const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

/** How a body is collected. */
interface Collecting extends Omit<Taking, 'bodyBytesMax'> {
  bytesMax: number
}

/**
 * Collects a whole body of at most `bytesMax` bytes and hands it over once. A larger one is answered 413 at once. The
 * library skips the rest: closing the connection would reset it, and the client would never see the answer.
 */
function collectBody(
  exchange: Exchange,
  { head, bytesMax, principal, handling: { uploads, turn } }: Collecting,
  receive: (body: Uint8Array) => void,
): void {
  // Most bodies come in one part.
  let gathered: GatheredBytes | undefined
  const end = () => {
    gathered = undefined
    upload.release()
  }
  const refuseBody = (refusal: Refusal) => {
    end()
    refuseRest(exchange, refusal)
  }
  const upload = uploads.hold({ principal, owner: exchange.owner }, refuseBody)
  exchange.onGone(end)
  const { contentLength = 0 } = head
  if (contentLength > bytesMax) {
    refuseBody(tooLarge(bytesMax))
    return
  }
  exchange.onData((part, last) => {
    if (!exchange.open) return
    const bytes = new Uint8Array(part)
    if ((gathered?.length ?? 0) + bytes.length > bytesMax) {
      refuseBody(tooLarge(bytesMax))
      return
    }
    const isWhole = gathered === undefined && last
    if (isWhole && turn.takesBodies) {
      end()
      // A copy: the library reuses its buffer when this returns.
      receive(Buffer.from(bytes))
      return
    }
    // A whole body is counted, too, while it waits.
    gathered ??= new GatheredBytes({ memory: upload, bytesMax: contentLength || bytesMax })
    gathered.add(bytes)
    if (!last || !exchange.open) return
    const complete = () => {
      const body = gathered?.take()
      end()
      if (body !== undefined && exchange.open) receive(body)
    }
    if (!isWhole && turn.takesBodies) complete()
    else turn.bodyLater(exchange.owner, complete)
  })
}

/** 413 for a body over its limit. */
export function tooLarge(bytesMax: number): Refusal {
  return refuse('too_large', `Expected a body of at most ${bytesMax} bytes`)
}
