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
  let body: Buffer | undefined
  let bytes = 0
  exchange.onData((part, last) => {
    if (!exchange.open) return
    if (bytes + part.byteLength > bytesMax) {
      body = undefined
      exchange.refuse(tooLarge(bytesMax))
      return
    }
    // A copy: the library takes its buffer back when this returns.
    if (body === undefined) body = Buffer.from(new Uint8Array(part))
    else {
      body = withRoom(body, { bytes, more: part.byteLength, bytesMax })
      body.set(new Uint8Array(part), bytes)
    }
    bytes += part.byteLength
    if (last) receive(body.subarray(0, bytes))
  })
}

/** Twice as large each time that it is full: parts of one byte would take a hundred times their bytes in a list. */
function withRoom(
  body: Buffer,
  { bytes, more, bytesMax }: { bytes: number; more: number; bytesMax: number },
): Buffer {
  if (bytes + more <= body.length) return body
  const larger = Buffer.allocUnsafeSlow(Math.min(bytesMax, Math.max(bytes + more, body.length * 2)))
  larger.set(body.subarray(0, bytes))
  return larger
}

/** 413 for a body over its bound. */
export function tooLarge(bytesMax: number): Refusal {
  return refuse('too_large', `Expected a body of at most ${bytesMax} bytes`)
}
