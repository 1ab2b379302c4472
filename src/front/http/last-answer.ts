import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from '../engine/http-listener.js'

/**
 * Bytes that uWebSockets.js buffers until it has parsed everything that arrived. It sends a longer answer
 * while parsing, so the answer is not lost if later bytes make the library close the connection.
 */
const CORK_BYTES = 16 * 1024

/** The parts of a last answer. */
export interface LastAnswerParts {
  writeHead(): void
  body: string | Uint8Array
  headOnly: boolean
  /** The whole request body has arrived, or its end cannot be determined. */
  wholeBody: boolean
  /**
   * Sends the answer even if bytes have arrived that close the connection; pads it to `CORK_BYTES` for that.
   */
  beforeTheRest: boolean
  /** Called when none of the answer is in memory any more. */
  onEnd?: () => void
}

/**
 * An answer after which its connection accepts no further request, whatever uWebSockets.js reads there.
 *
 * The library handles the next request as soon as it considers an answer finished, even if the client has not
 * read it yet, and it closes a connection on which a request arrives before the previous answer is finished.
 * Therefore the whole answer is sent, but the length declared to the library is one byte more: for the
 * library the answer is never finished. The connection is closed when the kernel has the whole answer.
 *
 * An answer of no bytes is finished when it is written, and the library closes the connection.
 */
export class LastAnswer {
  readonly #response: HttpResponse
  readonly #body: Uint8Array
  readonly #onEnd: (() => void) | undefined
  #wholeBody: boolean
  #sent: boolean
  #closed = false
  #lingering: NodeJS.Timeout | undefined

  /** Writes as much as the connection accepts. Called while the head of the request is handled, or later. */
  constructor(
    response: HttpResponse,
    { writeHead, body, headOnly, wholeBody, beforeTheRest, onEnd }: LastAnswerParts,
  ) {
    this.#response = response
    this.#body = typeof body === 'string' ? bytesOf(body, beforeTheRest) : body
    this.#onEnd = onEnd
    this.#wholeBody = wholeBody
    this.#sent = headOnly
    if (this.#body.length === 0) {
      this.#closed = true
      response.cork(() => {
        writeHead()
        response.endWithoutBody(0, true)
      })
      this.#onEnd?.()
      return
    }
    response.cork(() => {
      writeHead()
      response.writeHeader('Connection', 'close')
      // Writes the Content-Length header, which later calls do not change.
      response.tryEnd('', this.#body.length)
      if (headOnly) return
      if (beforeTheRest) this.#sent = this.#write(this.#body)
      // The library may buffer these bytes. It accepts the last byte only after the kernel has the others.
      else this.#write(this.#body.subarray(0, -1))
    })
    response.onWritable(() => {
      this.#finish()
      return true
    })
    if (beforeTheRest && !headOnly) this.#finish()
    // Deferred: the kernel may not have all of it yet, and more of the body may be about to be parsed.
    else setImmediate(() => this.#finish())
  }

  /** The request body has arrived, so closing the connection no longer resets a client that is sending. */
  bodyArrived(): void {
    this.#wholeBody = true
    setImmediate(() => this.#finish())
  }

  disconnected(): void {
    this.#closed = true
    clearTimeout(this.#lingering)
    this.#onEnd?.()
  }

  #finish(): void {
    if (this.#closed) return
    if (!this.#sent) this.#sent = this.#writeRest()
    if (!this.#sent) return
    if (this.#wholeBody) {
      this.#closed = true
      this.#response.close()
    }
    // A client that is still sending would be reset and might never see the answer.
    else this.#lingering ??= setTimeout(() => this.#response.close(), limits.lastAnswerLingerMs)
  }

  /**
   * Writes the rest. Returns whether the kernel has the whole answer. Bytes written within one `cork` count
   * as sent while the library still buffers them, and closing the connection would lose them. Therefore the
   * last byte has its own `cork`: it is accepted only when the kernel has all bytes before it.
   */
  #writeRest(): boolean {
    const last = this.#body.length - 1
    const offset = this.#response.getWriteOffset()
    if (offset < last) {
      this.#response.cork(() => {
        this.#write(this.#body.subarray(offset, last))
      })
    }
    let taken = false
    this.#response.cork(() => {
      taken = this.#response.getWriteOffset() >= last && this.#write(this.#body.subarray(last))
    })
    return taken
  }

  /**
   * Returns whether the whole part was accepted; the library accepts nothing while it buffers an earlier
   * part.
   */
  #write(part: Uint8Array): boolean {
    const [taken] = this.#response.tryEnd(part, this.#body.length + 1)
    return taken
  }
}

/** Never empty: white space does not change these texts. */
function bytesOf(text: string, beforeTheRest: boolean): Uint8Array {
  return Buffer.from(beforeTheRest ? text.padEnd(CORK_BYTES) : text || '\n')
}
