import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from '../door/door.js'

/**
 * Bytes that uWebSockets.js holds back until it has parsed what has arrived. A longer answer is sent while parsing, so
 * it is not lost if what follows has the connection closed.
 */
const CORK_BYTES = 16 * 1024

/** What a last answer consists of. */
export interface LastAnswerParts {
  /** Writes status line and headers. */
  writeHead(): void
  body: string | Uint8Array
  headOnly: boolean
  /** The whole body of the request has arrived, or its end cannot be known. */
  wholeBody: boolean
  /** The answer is sent even if more has arrived that closes the connection; for this it is padded to `CORK_BYTES`. */
  beforeTheRest: boolean
  /** Called when no memory waits for its reader any more. */
  onEnd?: () => void
}

/**
 * An answer after which its connection takes no further request, whatever uWebSockets.js reads there.
 *
 * The library goes on to the next request as soon as it considers an answer finished, even if the client has not read
 * it yet; and it closes a connection on which a request arrives before the one before it is answered. So the whole
 * answer is sent, but the library is told a length of one byte more: for it, the answer is never finished, and the
 * connection is closed once the kernel has all of it.
 */
export class LastAnswer {
  readonly #response: HttpResponse
  readonly #body: Uint8Array
  readonly #onEnd: (() => void) | undefined
  #wholeBody: boolean
  #sent: boolean
  #gone = false
  #lingering: NodeJS.Timeout | undefined

  /** Writes as much as the connection takes. Called while the head of the request is handled, or later. */
  constructor(
    response: HttpResponse,
    { writeHead, body, headOnly, wholeBody, beforeTheRest, onEnd }: LastAnswerParts,
  ) {
    this.#response = response
    this.#body = typeof body === 'string' ? bytesOf(body, beforeTheRest) : body
    this.#onEnd = onEnd
    this.#wholeBody = wholeBody
    this.#sent = headOnly
    response.cork(() => {
      writeHead()
      // Writes the length header, which later calls do not change.
      response.tryEnd('', this.#body.length)
      if (headOnly) return
      if (beforeTheRest) this.#sent = this.#write(this.#body)
      // The library may still hold what is written here. It takes the last byte only once the kernel has the rest.
      else this.#write(this.#body.subarray(0, -1))
    })
    response.onWritable(() => {
      this.#finish()
      return true
    })
    if (beforeTheRest && !headOnly) this.#finish()
    // Later: the kernel may not have all of it yet, and more of the body may be about to be parsed.
    else setImmediate(() => this.#finish())
  }

  /** The body of the request has arrived, so that closing the connection resets nobody who is still sending. */
  bodyArrived(): void {
    this.#wholeBody = true
    setImmediate(() => this.#finish())
  }

  /** The connection is closed. */
  gone(): void {
    this.#gone = true
    clearTimeout(this.#lingering)
    this.#onEnd?.()
  }

  #finish(): void {
    if (this.#gone) return
    if (!this.#sent) this.#sent = this.#writeRest()
    if (!this.#sent) return
    if (this.#wholeBody) {
      this.#gone = true
      this.#response.close()
    }
    // A client that is still sending would be reset and might never see the answer.
    else this.#lingering ??= setTimeout(() => this.#response.close(), limits.lastAnswerLingerMs)
  }

  /**
   * Whether the kernel has all of it. What is written within one `cork` counts as taken while the library still holds it,
   * and closing the connection then would lose it. So the last byte has a `cork` of its own: it is taken only once the
   * kernel has all before it.
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

  /** Whether all of a part is taken; the library takes nothing while it still holds some of an earlier one. */
  #write(part: Uint8Array): boolean {
    const [taken] = this.#response.tryEnd(part, this.#body.length + 1)
    return taken
  }
}

/** Never empty: an answer without bytes would be finished at once. White space changes none of these texts. */
function bytesOf(text: string, beforeTheRest: boolean): Uint8Array {
  return Buffer.from(beforeTheRest ? text.padEnd(CORK_BYTES) : text || '\n')
}
