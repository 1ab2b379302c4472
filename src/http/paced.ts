import type { HttpResponse } from './uws.js'

/** How a body goes out that no socket buffer holds. */
export interface Pace {
  /** Called as often as that changes: the bytes of memory that wait for the reader; 0 once, at the end. */
  held(bytes: number): void
}

/**
 * Sends the body of an answer, whose head was written already, at the pace at which its reader takes it: the HTTP library
 * is handed no more than its socket has room for, since it would keep a copy of the rest. Called within `cork`.
 */
export function sendPaced(response: HttpResponse, body: Uint8Array, pace: Pace): void {
  const size = body.length
  const [, done] = response.tryEnd(body, size)
  if (done) {
    pace.held(0)
    return
  }
  // The socket has taken most of it, as a rule: only the rest is held on to.
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
