import { refuse, type Refusal } from '../base/errors.js'
import type { Exchange } from './exchange.js'
import { GatheredBytes } from './gathered-bytes.js'
import type { RequestHead } from './request.js'

/** What a body is collected by. */
export interface Collecting {
  head: RequestHead
  bytesMax: number
  /** Called once when nothing more of it is collected, unless the client has gone. */
  settled(): void
}

/**
 * Collects a whole body of at most `bytesMax` bytes and hands it over once. A larger one is answered 413 at once. The
 * library passes over the rest of it: closing the connection would reset it, and the client would never see why.
 */
export function collectBody(
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
