import type { HttpResponse } from '../engine/http-listener.js'

/** Callbacks while a large body is sent. */
export interface Pace {
  /** Called with the number of unread bytes at each change, and once with 0 at the end. */
  onUnreadBytes(bytes: number): void
}

/**
 * Sends the body of an answer, whose head was already written, at the client's pace. The HTTP library gets no
 * more than its socket can accept, because it would copy the rest. Must be called within `cork`.
 */
export function sendPaced(response: HttpResponse, body: Uint8Array, pace: Pace): void {
  const size = body.length
  const [, done] = response.tryEnd(body, size)
  if (done) {
    pace.onUnreadBytes(0)
    return
  }
  // Usually the socket has accepted most of it: keeps only the rest.
  let from = response.getWriteOffset()
  let rest = body.slice(from)
  pace.onUnreadBytes(rest.length)
  response.onWritable((offset) => {
    const [ok, finished] = response.tryEnd(rest.subarray(offset - from), size)
    if (finished) {
      pace.onUnreadBytes(0)
      return ok
    }
    const sent = response.getWriteOffset()
    if (sent - from > rest.length / 2) {
      rest = rest.slice(sent - from)
      from = sent
      pace.onUnreadBytes(rest.length)
    }
    return ok
  })
}

/** Concatenates parts. Not a Buffer, whose `slice` would be a view of the whole. */
export function concatenated(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
