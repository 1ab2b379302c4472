import type { HttpResponse } from '../door/door.js'

/** Callbacks while a body is sent that is larger than the socket's buffer. */
export interface Pace {
  /** Called with the bytes that still wait for the reader, at each change; once with 0, at the end. */
  held(bytes: number): void
}

/**
 * Sends the body of an answer, whose head was written already, at the pace of its reader: the HTTP library gets no more
 * than its socket has room for, since it would keep a copy of the rest. Called within `cork`.
 */
export function sendPaced(response: HttpResponse, body: Uint8Array, pace: Pace): void {
  const size = body.length
  const [, done] = response.tryEnd(body, size)
  if (done) {
    pace.held(0)
    return
  }
  // Usually the socket has taken most of it: only the rest is kept.
  let from = response.getWriteOffset()
  let rest = body.slice(from)
  pace.held(rest.length)
  response.onWritable((offset) => {
    const [ok, finished] = response.tryEnd(rest.subarray(offset - from), size)
    if (finished) {
      pace.held(0)
      return ok
    }
    const sent = response.getWriteOffset()
    if (sent - from > rest.length / 2) {
      rest = rest.slice(sent - from)
      from = sent
      pace.held(rest.length)
    }
    return ok
  })
}

/** Parts in one piece: not a Buffer, whose `slice` would be a view of the whole. */
export function joined(parts: readonly Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
