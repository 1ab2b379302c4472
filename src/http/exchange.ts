import { STATUS_CODES } from 'node:http'
import { statusOf, type Refusal } from '../base/errors.js'
import type { Answer } from '../routes/route.js'
import { problemOf } from '../wire/problem.js'
import type { HttpResponse } from './uws.js'

const statusLines = new Map<number, string>()
for (const [status, text] of Object.entries(STATUS_CODES))
  statusLines.set(Number(status), `${status} ${text}`)

/**
 * Bytes that uWebSockets.js holds back until its parser is through with what has arrived. An answer that does not fit
 * goes out in the middle of parsing, and with it the end of the connection, which stops the parser there.
 */
const CORK_BYTES = 16 * 1024

/** What happens around an exchange. */
export interface ExchangeWatch {
  /** Called once, when the answer is out or the client has gone. Status 0: it had gone. */
  done(status: number): void
}

/** One request and its answer. After the client has gone, answering does nothing. */
export class Exchange {
  readonly requestId: string
  /** The origin that the answer may be read by (CORS); empty for none. */
  readonly allowedOrigin: string
  readonly #response: HttpResponse
  readonly #watch: ExchangeWatch
  /** The answer to HEAD: all of the one to GET but its body (RFC 9110, 9.3.2). */
  readonly #headOnly: boolean
  /** The connection takes no further request after this one (src/http/opening.ts). */
  readonly #isLast: boolean
  #wholeBody = false
  #open = true
  #paused = false
  readonly #onGone: (() => void)[] = []
  /** Parts of the body that came before anyone wanted them. */
  #held: { part: ArrayBuffer; last: boolean }[] | undefined
  #receive: ((part: ArrayBuffer, last: boolean) => void) | undefined

  constructor(
    response: HttpResponse,
    about: { requestId: string; allowedOrigin: string; headOnly: boolean; isLast: boolean },
    watch: ExchangeWatch,
  ) {
    this.#response = response
    this.requestId = about.requestId
    this.allowedOrigin = about.allowedOrigin
    this.#watch = watch
    this.#headOnly = about.headOnly
    this.#isLast = about.isLast
    response.onAborted(() => this.#gone())
  }

  /** False when the answer is out or the client has gone. */
  get open(): boolean {
    return this.#open
  }

  /** Has `callback` called when the client goes before its answer is out. */
  onGone(callback: () => void): void {
    this.#onGone.push(callback)
  }

  answer(answer: Answer): void {
    if (!this.#open) return
    this.#letGo()
    this.#response.cork(() => {
      this.#head(answer.status, answer.contentType ?? 'application/json')
      for (const [name, value] of answer.headers ?? []) this.#response.writeHeader(name, value)
      this.#finish(answer.status)
      this.#body(answer.body, false)
    })
  }

  /**
   * Answers a refusal. `closing`: the connection ends behind the answer, though uWebSockets.js still carries out what
   * has arrived already. `at once`: not even that, because it may be no request at all (contract.md 2.3).
   */
  refuse(
    refusal: Refusal,
    more: { closing?: boolean | 'at once'; headers?: readonly (readonly [string, string])[] } = {},
  ): void {
    if (!this.#open) return
    this.#letGo()
    const status = statusOf(refusal)
    this.#response.cork(() => {
      this.#head(status, 'application/problem+json')
      if (status === 401) this.#response.writeHeader('WWW-Authenticate', 'Bearer')
      if (refusal.retryAfterSecs !== undefined) {
        this.#response.writeHeader('Retry-After', String(refusal.retryAfterSecs))
      }
      for (const [name, value] of more.headers ?? []) this.#response.writeHeader(name, value)
      this.#finish(status)
      const text = JSON.stringify(problemOf(refusal, this.requestId))
      const closing = more.closing ?? false
      this.#body(closing === 'at once' ? text.padEnd(CORK_BYTES) : text, closing !== false)
    })
  }

  /** Begins an answer that is written in parts; `end` or `abort` finishes it. */
  begin(status: number, contentType: string, headers: readonly (readonly [string, string])[]): void {
    if (!this.#open) return
    this.#letGo()
    this.#response.cork(() => {
      this.#head(status, contentType)
      for (const [name, value] of headers) this.#response.writeHeader(name, value)
    })
  }

  /**
   * Writes a part. @returns false when the socket has it in its buffer and wants no more: wait for `onWritable`
   */
  write(part: string | Uint8Array): boolean {
    if (!this.#open) return false
    let drained = false
    this.#response.cork(() => {
      drained = this.#response.write(part)
    })
    return drained
  }

  /**
   * Has `callback` called each time that the socket takes more. It always writes something: uWebSockets.js has armed
   * a timer at the write that failed, which would close the connection otherwise.
   */
  onWritable(callback: () => void): void {
    this.#response.onWritable(() => {
      callback()
      return true
    })
  }

  end(status: number, lastPart?: string): void {
    if (!this.#open) return
    this.#response.cork(() => {
      this.#finish(status)
      this.#response.end(lastPart)
    })
  }

  /** Closes the connection in the middle, so that the client sees that the answer is not whole. */
  abort(): void {
    if (this.#open) this.#response.close()
  }

  /** Receives the body, part by part; each part is valid only during the call. */
  onData(callback: (part: ArrayBuffer, last: boolean) => void): void {
    if (this.#held === undefined) {
      this.#listen(callback)
      return
    }
    this.#receive = callback
    // First: an answer that a callback gives ends what may be done with the response. A whole body stays as it is: once
    // resumed, uWebSockets.js would wait ten seconds for more of it, and then close the connection.
    if (!this.#held.some(({ last }) => last)) this.resume()
    for (const { part, last } of this.#held.splice(0)) callback(part, last)
  }

  /**
   * Keeps what has arrived of the body until `onData`, and lets no more arrive: for who must wait before it is known
   * what to do with it. The HTTP library drops what nobody takes at once.
   */
  holdBody(): void {
    const held: { part: ArrayBuffer; last: boolean }[] = []
    this.#held = held
    this.#listen((part, last) => {
      if (this.#receive === undefined) held.push({ part: part.slice(0), last })
      else this.#receive(part, last)
    })
    this.pause()
  }

  /**
   * Of what has arrived together, uWebSockets.js gives a paused connection the rest too, and with each 160 KiB has it
   * bring more within ten seconds or be closed. Pausing it again takes that back.
   */
  #listen(receive: (part: ArrayBuffer, last: boolean) => void): void {
    this.#response.onData((part, last) => {
      const wasPaused = this.#paused
      this.#wholeBody ||= last
      receive(part, last)
      if (this.#open && wasPaused && this.#paused) this.#response.pause()
    })
  }

  /** The rest of a body that was held back is passed over; a connection that stays paused takes no next request. */
  #letGo(): void {
    this.resume()
    if (this.#held === undefined || this.#receive !== undefined) return
    this.#receive = () => {}
    this.#held = []
  }

  pause(): void {
    if (!this.#open || this.#paused) return
    this.#paused = true
    this.#response.pause()
  }

  /** Resuming a connection that is not paused makes uWebSockets.js reset it at its next request. */
  resume(): void {
    if (!this.#open || !this.#paused) return
    this.#paused = false
    this.#response.resume()
  }

  #head(status: number, contentType: string): void {
    this.#response.writeStatus(statusLines.get(status) ?? String(status))
    this.#response.writeHeader('Content-Type', contentType)
    this.#response.writeHeader('X-Request-Id', this.requestId)
    if (this.#isLast && !this.#wholeBody) this.#response.writeHeader('Connection', 'close')
    if (this.allowedOrigin === '') return
    this.#response.writeHeader('Access-Control-Allow-Origin', this.allowedOrigin)
    this.#response.writeHeader('Access-Control-Expose-Headers', exposedHeaders)
    this.#response.writeHeader('Vary', 'Origin')
  }

  /**
   * Behind the last answer of a connection it is ended, unless the body is not whole yet: its client is still sending,
   * would be reset and never see the answer, so it has been told to end the connection itself.
   */
  #body(text: string, closing: boolean): void {
    const ends = closing || (this.#isLast && this.#wholeBody)
    if (this.#headOnly) this.#response.endWithoutBody(Buffer.byteLength(text), ends)
    else this.#response.end(text, ends)
  }

  #finish(status: number): void {
    this.#open = false
    this.#watch.done(status)
  }

  #gone(): void {
    if (!this.#open) return
    this.#finish(0)
    for (const callback of this.#onGone) callback()
  }
}

const exposedHeaders = 'ETag, Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id'
