import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { HttpResponse } from '../engine/http-listener.js'
import type { BodyBuffers, PausableBody } from './body-buffers.js'
import { ChunkJoiner } from './chunk-joiner.js'

/** Receives a part of a body, valid only during the call; the last one can be empty. */
export type ReceivePart = (part: Uint8Array, last: boolean) => void

interface BodyRequest {
  /** False after its answer was sent or its client has disconnected: the response must not be used any more. */
  isOpen(): boolean
  /** To whose limit buffered bytes count; empty before admission. */
  holder(): string
  /** The connection accepts no further request. */
  readonly isLast: boolean
  onWhole(): void
  /** Refuses the body, of which the rest cannot be read. */
  refuse(refusal: Refusal): void
}

/**
 * The body of one request, from the HTTP library to its reader. A reader that has paused it receives nothing,
 * whatever the library still delivers, until it resumes it.
 */
export class BodyFlow implements PausableBody {
  readonly #response: HttpResponse
  readonly #request: BodyRequest
  readonly #buffers: BodyBuffers
  /** What has arrived and not been read. */
  readonly #parts: Uint8Array[] = []
  #bufferedBytes = 0
  /** Whose buffered bytes are counted. */
  #holder = ''
  #receive: ReceivePart | undefined
  /** The reader wants nothing now. */
  #paused = false
  #connectionPaused = false
  /** The library has delivered the whole body, of which chunks may still be held to be joined. */
  #whole = false
  /** The whole body was read or is buffered. */
  #isComplete = false
  /** The reader has received the whole body. */
  #ended = false
  /** The reader is being called. */
  #delivering = false
  /** The connection is closed: the response must not be used any more. */
  #isClosed = false

  constructor(response: HttpResponse, buffers: BodyBuffers, request: BodyRequest) {
    this.#response = response
    this.#buffers = buffers
    this.#request = request
    const arrived = (part: Uint8Array, last: boolean) => this.#arrived(part, last)
    const chunks = request.isLast
      ? new ChunkJoiner({ deliver: arrived, refuse: (refusal) => request.refuse(refusal) })
      : undefined
    response.onData((part, last) => {
      this.#whole ||= last
      // Data after a chunked body, such as trailers, must not end the connection before its answer was sent.
      if (last && chunks !== undefined && request.isOpen()) response.pause()
      if (last) this.#onWhole()
      const bytes = new Uint8Array(part)
      if (chunks === undefined) arrived(bytes, last)
      else if (!chunks.add(bytes, last) && !this.#isClosed) response.close()
    })
  }

  get whole(): boolean {
    return this.#whole
  }

  /** Pauses until there is a reader. */
  buffer(): void {
    if (this.#receive === undefined && !this.#paused) this.pause()
  }

  /** Sets the reader, which receives what has arrived and everything that follows. */
  read(receive: ReceivePart): void {
    this.#receive = receive
    this.#setHolder()
    this.resume()
  }

  pause(): void {
    this.#paused = true
    this.#buffers.forget(this.#holder, this)
    if (!this.#connectionPaused) this.pauseConnection()
  }

  /**
   * Lets the reader receive more. The connection is not resumed if the body is complete: uWebSockets.js would
   * wait ten seconds for more, and then close the connection.
   */
  resume(): void {
    if (!this.#request.isOpen()) return
    this.#paused = false
    this.#deliverBuffered()
    if (this.#paused || !this.#request.isOpen() || this.#whole || !this.#connectionPaused) return
    this.#buffers.resume(this.#holder, this)
  }

  /**
   * Skips what is left of the body, before its answer: a connection that stays paused accepts no further
   * request, and uWebSockets.js resets it at its next one. After a chunked body nothing is read.
   */
  skip(): void {
    this.drop()
    if (!this.#request.isOpen() || !this.#connectionPaused) return
    if (!(this.#request.isLast && this.#whole)) this.resumeConnection()
  }

  /** Drops buffered and later parts. */
  drop(): void {
    this.#receive = ignorePart
    this.#paused = false
    this.#buffers.forget(this.#holder, this)
    this.#parts.length = 0
    this.#count(-this.#bufferedBytes)
  }

  closed(): void {
    this.#isClosed = true
    this.drop()
  }

  pauseConnection(): void {
    if (!this.#request.isOpen()) return
    this.#connectionPaused = true
    this.#response.pause()
  }

  resumeConnection(): void {
    if (!this.#request.isOpen()) return
    this.#connectionPaused = false
    this.#response.resume()
  }

  /** The connection must not be resumed any more when its principal has fewer bytes (see `resume`). */
  #onWhole(): void {
    this.#buffers.forget(this.#holder, this)
    this.#request.onWhole()
  }

  #arrived(part: Uint8Array, last: boolean): void {
    this.#isComplete ||= last
    const wasPaused = this.#connectionPaused
    this.#take(part, last)
    // With every 160 KiB, even of a paused connection, uWebSockets.js starts a timer that closes the
    // connection unless more arrives within ten seconds. Pausing again stops that timer.
    if (wasPaused && this.#connectionPaused) this.pauseConnection()
  }

  /** Passes a part on, or buffers it. */
  #take(part: Uint8Array, last: boolean): void {
    const isBuffered = this.#paused || this.#bufferedBytes > 0 || part.length > limits.bodyPartBytes
    if (this.#receive === ignorePart || (this.#receive !== undefined && !isBuffered)) {
      this.#deliver(part, last)
      return
    }
    if (!this.#buffers.hasSpace(part.length)) {
      this.#request.refuse(tooManyBytes)
      return
    }
    // A copy: the library reuses its buffer.
    if (part.length > 0) this.#parts.push(part.slice())
    this.#count(part.length)
    if (!this.#paused) this.#deliverBuffered()
  }

  #deliverBuffered(): void {
    if (this.#delivering) return
    this.#delivering = true
    while (this.#receive !== undefined && !this.#paused && !this.#ended) {
      const part = this.#nextPart()
      if (part === undefined && !this.#isComplete) break
      this.#deliver(part ?? noBytes, this.#isComplete && this.#bufferedBytes === 0)
    }
    this.#delivering = false
  }

  /** Removes the next bytes from the buffer; undefined if it is empty. */
  #nextPart(): Uint8Array | undefined {
    const [first] = this.#parts
    if (first === undefined) return undefined
    const part = first.subarray(0, limits.bodyPartBytes)
    if (part.length === first.length) this.#parts.shift()
    else this.#parts[0] = first.subarray(part.length)
    this.#count(-part.length)
    return part
  }

  #count(bytes: number): void {
    this.#bufferedBytes += bytes
    this.#buffers.count(this.#holder, bytes)
  }

  #deliver(part: Uint8Array, last: boolean): void {
    this.#ended ||= last
    this.#receive?.(part, last)
  }

  /** Counts what is buffered to the principal, which is not known before admission. */
  #setHolder(): void {
    const holder = this.#request.holder()
    if (holder === this.#holder) return
    this.#buffers.forget(this.#holder, this)
    this.#buffers.count(this.#holder, -this.#bufferedBytes)
    this.#holder = holder
    this.#buffers.count(holder, this.#bufferedBytes)
  }
}

const ignorePart: ReceivePart = () => {}
const noBytes = new Uint8Array(0)
const tooManyBytes = refuse('overloaded', 'Too many bytes of request bodies are buffered, try again', {
  retryAfterSecs: 1,
})
