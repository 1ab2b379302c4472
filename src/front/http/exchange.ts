import { statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'
import type { Answer } from '../routes/route.js'
import {
  bearer,
  isBodiless,
  writeAnswerHead,
  writeKeepAlive,
  writeRefusalFields,
  type HeaderFields,
} from './answer-head.js'
import { BodyFlow } from './body-flow.js'
import type { BodyBuffers } from './body-buffers.js'
import { FanOut } from './streams/fan-out.js'
import { LastAnswer, type LastAnswerParts } from './last-answer.js'
import { problemDocuments, type RefusalForm } from '../routes/refusal-form.js'
import { concatenated, sendPaced, type Pace } from './paced.js'
import { tooManyUnreadBytes } from '../limits/bounds.js'
import type { HttpResponse } from '../engine/http-listener.js'

/** Is notified when an exchange ends. */
export interface ExchangeWatch {
  /**
   * Called once, when the whole answer was passed on or the client has disconnected (status 0).
   * @param tookMs since the head of the request was read
   */
  done(status: number, tookMs: number): void
}

/** One request and its answer. Answering does nothing after the client has disconnected. */
export class Exchange {
  readonly requestId: string
  /** The origin that may read the answer (CORS); empty for none. */
  readonly allowedOrigin: string
  /** The rate-limit headers; set when the request was counted. */
  rate: HeaderFields = []
  /** The challenges of a 401, by scheme. */
  challenges: readonly string[] = bearer
  refusals: RefusalForm = problemDocuments
  /** Returns the principal or address to whose quota bytes in memory are counted; set on admission. */
  holderOf: (() => string) | undefined
  /** Called when the answer was sent or the client has disconnected. */
  onDone: (() => void) | undefined
  /** Called when sending a large answer begins; the returned function is called when it has ended. */
  onLarge: (() => () => void) | undefined
  #holder = ''
  readonly #unsent: Quota
  readonly #response: HttpResponse
  readonly #watch: ExchangeWatch
  readonly #beganMs = performance.now()
  /** Answers HEAD: like GET, without the body (RFC 9110, 9.3.2). */
  readonly headOnly: boolean
  /** By the head of the request. */
  readonly contentLength: number | undefined
  /** The connection accepts no further request after this one (src/front/http/head.ts). */
  #isLast: boolean
  /** The client keeps the connection open. */
  readonly #isKept: boolean
  #open = true
  #last: LastAnswer | undefined
  #begun = false
  /** A large answer is being sent. */
  #answering = false
  #sent: (() => void) | undefined
  readonly #onGone: (() => void)[] = []
  readonly #buffers: BodyBuffers
  #body: BodyFlow | undefined

  constructor(
    response: HttpResponse,
    about: {
      requestId: string
      allowedOrigin: string
      headOnly: boolean
      isLast: boolean
      isKept: boolean
      contentLength?: number | undefined
      unsent: Quota
      buffers: BodyBuffers
    },
    watch: ExchangeWatch,
  ) {
    this.#response = response
    this.requestId = about.requestId
    this.allowedOrigin = about.allowedOrigin
    this.#watch = watch
    this.headOnly = about.headOnly
    this.contentLength = about.contentLength
    this.#isLast = about.isLast
    this.#isKept = about.isKept && !about.isLast
    this.#unsent = about.unsent
    this.#buffers = about.buffers
    response.onAborted(() => this.#disconnected())
  }

  /** False after the answer was sent or the client has disconnected. */
  get open(): boolean {
    return this.#open && !this.#answering
  }

  /** Whether sending the answer has begun. */
  get begun(): boolean {
    return this.#begun
  }

  /** Calls `callback` if the client disconnects before the answer was sent. */
  onDisconnect(callback: () => void): void {
    this.#onGone.push(callback)
  }

  answer(answer: Answer): void {
    if (!this.open) return
    const { body } = answer
    if (typeof body !== 'string') this.#answerParts(answer, body)
    else if (body.length > limits.largeAnswerBytes) this.#answerParts(answer, [Buffer.from(body)])
    else this.#answerWhole(answer, body)
  }

  #answerWhole(answer: Answer, body: string | Uint8Array): void {
    this.#skipBody(answer.status)
    this.#send(answer.status, body, () => this.#answerHead(answer))
  }

  /** Sends a large answer. Its bytes count until the client has read them; 503 if there are too many. */
  #answerParts(answer: Answer, parts: readonly Uint8Array[]): void {
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    if (this.headOnly || size <= limits.largeAnswerBytes) {
      this.#answerWhole(answer, concatenated(parts, size))
    } else if (!this.reserveBytes(size)) {
      this.refuse(tooManyUnreadBytes)
    } else {
      this.#answering = true
      this.#sent = this.onLarge?.()
      const pace = this.#paceOf(answer.status, size)
      largeAnswers.each([parts], () => this.#sendPaced(answer, concatenated(parts, size), pace))
    }
  }

  #sendPaced(answer: Answer, body: Uint8Array, pace: Pace): void {
    if (!this.#open) return
    this.#skipBody(answer.status)
    const writeHead = () => this.#answerHead(answer)
    if (this.#isLast) {
      const onEnd = () => pace.onUnreadBytes(0)
      this.#sendLast({ status: answer.status, body, beforeTheRest: false, onEnd }, writeHead)
      return
    }
    this.#response.cork(() => {
      writeHead()
      this.#keepAlive()
      sendPaced(this.#response, body, pace)
    })
  }

  /**
   * Releases counted bytes as the body is sent. It must not reference the body, which would then stay in
   * memory as long.
   */
  #paceOf(status: number, size: number): Pace {
    let counted = size
    this.onDisconnect(() => this.releaseBytes(counted))
    return {
      onUnreadBytes: (bytes) => {
        this.releaseBytes(counted - bytes)
        counted = bytes
        if (bytes === 0 && this.#open) this.#finish(status)
      },
    }
  }

  /** The principal or address to whose quota bytes in memory are counted; empty before admission. */
  get holder(): string {
    if (this.#holder === '' && this.holderOf !== undefined) this.#holder = this.holderOf()
    return this.#holder
  }

  /** Counts unread bytes of an answer. Returns false, and counts nothing, if there are too many. */
  reserveBytes(bytes: number): boolean {
    return this.#unsent.reserve(this.holder, bytes)
  }

  releaseBytes(bytes: number): void {
    this.#unsent.release(this.holder, bytes)
  }

  /**
   * Answers with a refusal. `closing`: closes the connection afterwards and ignores everything else that
   * arrived with the request, which may not be a valid request at all.
   */
  refuse(given: Refusal, more: { closing?: boolean; headers?: HeaderFields } = {}): void {
    if (!this.open) return
    const refusal = this.refusals.adapt(given)
    const status = statusOf(refusal)
    this.#skipBody(status)
    const { contentType, body } = this.refusals.encode(refusal, this.requestId)
    const writeHead = () => {
      this.#head({ status, contentType, headers: more.headers })
      writeRefusalFields(this.#response, refusal, this.challenges)
    }
    if (more.closing === true) this.#sendLast({ status, body, beforeTheRest: true }, writeHead)
    else this.#send(status, body, writeHead)
  }

  /**
   * Begins an answer that is written in parts; `end` or `abort` finishes it. For HEAD it is finished
   * immediately, and the exchange is no longer open.
   */
  begin(status: number, contentType: string, headers: HeaderFields): void {
    if (!this.#open) return
    this.#begun = true
    this.#body?.skip()
    this.#response.cork(() => {
      this.#head({ status, contentType, headers })
      this.#keepAlive()
      if (!this.headOnly) return
      this.#finish(status)
      this.#response.endWithoutBody()
    })
  }

  /** Writes a part. @returns false if the socket has buffered it and wants no more: wait for `onWritable` */
  write(part: string | Uint8Array): boolean {
    if (!this.#open) return false
    let drained = false
    this.#response.cork(() => {
      drained = this.#response.write(part)
    })
    return drained
  }

  /**
   * Calls `callback` each time the socket accepts more. The callback must always write something: the failed
   * write has started a timer of uWebSockets.js, which would otherwise close the connection.
   */
  onWritable(callback: () => void): void {
    this.#response.onWritable(() => {
      callback()
      return true
    })
  }

  end(status: number, lastPart?: string | Uint8Array): void {
    if (!this.#open) return
    this.#response.cork(() => {
      this.#finish(status)
      this.#response.end(lastPart)
    })
  }

  /** Closes the connection in the middle of the answer, so that the client sees that it is incomplete. */
  abort(): void {
    if (this.#open) this.#response.close()
  }

  /** The body, whose parts arrive from the first use of it; the HTTP library skips a body that is not used. */
  get body(): BodyFlow {
    this.#body ??= new BodyFlow(this.#response, this.#buffers, {
      isOpen: () => this.#open,
      holder: () => this.holder,
      isLast: this.#isLast,
      onWhole: () => this.#last?.bodyArrived(),
      refuse: (refusal) => this.#refuseBody(refusal),
    })
    return this.#body
  }

  /**
   * Skips what is left of the body. If the client wants the connection closed and has not sent the whole body,
   * the library would close the connection with the answer: a client that is still sending would be reset, and
   * might never see the answer. A status without a body has nothing to lose.
   */
  #skipBody(status: number): void {
    const isClosing = !this.#isKept && !isBodiless(status) && (this.contentLength ?? 0) > 0
    if (isClosing && !this.body.whole) this.#isLast = true
    this.#body?.skip()
  }

  /** Refuses a request during its body, whose reader is notified as if the client had disconnected. */
  #refuseBody(refusal: Refusal): void {
    const callbacks = this.#open ? this.#onGone.splice(0) : []
    this.refuse(refusal, { closing: true })
    for (const callback of callbacks) callback()
  }

  #answerHead({ status, contentType, headers }: Answer): void {
    this.#head({ status, contentType: contentType ?? 'application/json', headers })
  }

  #head(head: { status: number; contentType: string; headers: HeaderFields | undefined }): void {
    writeAnswerHead(this.#response, this, head)
  }

  #keepAlive(): void {
    if (this.#isKept) writeKeepAlive(this.#response)
  }

  #send(status: number, body: string | Uint8Array, writeHead: () => void): void {
    if (this.#isLast) {
      this.#sendLast({ status, body, beforeTheRest: false }, writeHead)
      return
    }
    this.#response.cork(() => {
      writeHead()
      this.#keepAlive()
      this.#finish(status)
      if (!this.headOnly && !isBodiless(status)) {
        this.#response.end(body)
        return
      }
      // Written as a header: if uWebSockets.js knew the length, it would consider the answer unfinished until
      // that many bytes were sent.
      if (!isBodiless(status)) this.#response.writeHeader('Content-Length', String(Buffer.byteLength(body)))
      this.#response.endWithoutBody()
    })
  }

  /** Answers, and ignores everything that follows on the connection. */
  #sendLast(
    { status, ...about }: { status: number } & Pick<LastAnswerParts, 'body' | 'beforeTheRest' | 'onEnd'>,
    writeHead: () => void,
  ): void {
    this.#finish(status)
    this.#last = new LastAnswer(this.#response, {
      writeHead,
      ...about,
      headOnly: this.headOnly,
      wholeBody: this.#body?.whole === true || about.beforeTheRest,
    })
  }

  #finish(status: number): void {
    this.#open = false
    this.#watch.done(status, performance.now() - this.#beganMs)
    this.onDone?.()
    this.#sent?.()
  }

  #disconnected(): void {
    this.#last?.disconnected()
    this.#body?.closed()
    if (!this.#open) return
    this.#finish(0)
    for (const callback of this.#onGone) callback()
  }
}

/** Large answers are sent one after another; the front thread serves other requests in between. */
const largeAnswers = new FanOut('later')
