import { refuse, type Refusal } from '../base/errors.js'
import type { Exchange } from './exchange.js'
import type { RequestHead } from './request.js'

/**
 * Collects a whole body of at most `bytesMax` bytes and hands it over once. A larger one is answered 413 at once. The
 * library passes over the rest of it: closing the connection would reset it, and the client would never see why.
 */
export function collectBody(
  exchange: Exchange,
  { head, bytesMax }: { head: RequestHead; bytesMax: number },
  receive: (body: Uint8Array) => void,
): void {
  if (head.contentLength !== undefined && head.contentLength > bytesMax) {
    exchange.refuse(tooLarge(bytesMax))
    return
  }
  let parts: Uint8Array[] | undefined
  let bytes = 0
  exchange.onData((part, last) => {
    if (!exchange.open) return
    bytes += part.byteLength
    if (bytes > bytesMax) {
      exchange.refuse(tooLarge(bytesMax))
      return
    }
    // A copy: the library takes its buffer back when this returns.
    const copy = Buffer.from(new Uint8Array(part))
    if (last && parts === undefined) {
      receive(copy)
      return
    }
    parts ??= []
    parts.push(copy)
    if (last) receive(Buffer.concat(parts))
  })
}

/** 413 for a body over its bound. */
export function tooLarge(bytesMax: number): Refusal {
  return refuse('too_large', `Expected a body of at most ${bytesMax} bytes`)
}
