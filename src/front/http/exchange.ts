import { statusOf, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Answer } from '../routes/route.js'
import { problemOf } from '../../wire/problem.js'
import {
  bearer,
  isBodiless,
  writeAnswerHead,
  writeKeepAlive,
  writeRefusalFields,
  type HeaderFields,
} from './answer-head.js'
import { ChunkGathering, HeldBody, type ReceivePart } from './chunk-gathering.js'
import { FanOut } from './streams/fan-out.js'
import { LastAnswer, type LastAnswerParts } from './last-answer.js'
import { joined, sendPaced, type Pace } from './paced.js'
import type { Upload } from '../limits/uploads.js'
import { type BoundedBytes, noRoom } from '../limits/bounded-bytes.js'
import type { HttpResponse } from '../door/door.js'

/** What watches an exchange. */
export interface ExchangeWatch {
  /**
   * Called once, when the answer was handed over whole or the client has gone; status 0: it has gone.
   * @param tookMs since the request's head was there
   */
  done(status: number, tookMs: number): void
}

/** One request and its answer. After the client has gone, answering does nothing. */
export class Exchange {
  readonly requestId: string
  /** The origin that the answer may be read by (CORS); empty for none. */
  readonly allowedOrigin: string
  /** The headers of the rate limits; set once the request was counted. */
  rate: HeaderFields = []
  /** What a 401 asks for, by scheme. */
  challenges: readonly string[] = bearer
  /** Whose share of bytes in memory the exchange takes; set once the request was admitted. */
  ownerOf: (() => string) | undefined
  /** Called once the answer was sent or the client has gone. */
  onDone: (() => void) | undefined
  /** Called when a large answer begins to go out; what it returns, when that was sent or the client has gone. */
  onLarge: (() => () => void) | undefined
  #owner = ''
  readonly #unsent: BoundedBytes
  readonly #response: HttpResponse
  readonly #watch: ExchangeWatch
  readonly #beganMs = performance.now()
  /** The answer to HEAD: all of the one to GET but its body (RFC 9110, 9.3.2). */
  readonly headOnly: boolean
  /** The connection takes no further request after this one (src/front/http/head.ts). */
  readonly #isLast: boolean
  /** The client keeps the connection for a next request. */
  readonly #isKept: boolean
  #wholeBody = false
  #open = true
  #last: LastAnswer | undefined
  #begun = false
  /** A large answer is on its way. */
  #answering = false
  #sent: (() => void) | undefined
  #paused = false
  readonly #onGone: (() => void)[] = []
  #held: HeldBody | undefined

  constructor(
    response: HttpResponse,
    about: {
      requestId: string
      allowedOrigin: string
      headOnly: boolean
      isLast: boolean
      isKept: boolean
      unsent: BoundedBytes
    },
    watch: ExchangeWatch,
  ) {
    this.#response = response
    this.requestId = about.requestId
    this.allowedOrigin = about.allowedOrigin
    this.#watch = watch
    this.headOnly = about.headOnly
    this.#isLast = about.isLast
    this.#isKept = about.isKept && !about.isLast
    this.#unsent = about.unsent
    response.onAborted(() => this.#gone())
  }

  /** False when the answer was sent or the client has gone. */
  get open(): boolean {
    return this.#open && !this.#answering
  }

  /** True when the answer has begun. */
  get begun(): boolean {
    return this.#begun
  }

  /** Has `callback` called when the client goes before its answer is out. */
  onGone(callback: () => void): void {
    this.#onGone.push(callback)
  }

  answer(answer: Answer): void {
    if (!this.open) return
    const { body } = answer
    if (typeof body !== 'string') this.#answerParts(answer, body)
    else if (body.length > limits.largeAnswerBytes) this.#answerParts(answer, [Buffer.from(body)])
    else this.#answerAtOnce(answer, body)
  }

  #answerAtOnce(answer: Answer, body: string | Uint8Array): void {
    this.#letGo()
    this.#send(answer.status, body, () => this.#answerHead(answer))
  }

  /** A large answer takes room until its reader has it. 503 overloaded if there is no room. */
  #answerParts(answer: Answer, parts: readonly Uint8Array[]): void {
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    if (this.headOnly || size <= limits.largeAnswerBytes) {
      this.#answerAtOnce(answer, joined(parts, size))
    } else if (!this.takeRoom(size)) {
      this.refuse(noRoom)
    } else {
      this.#answering = true
      this.#sent = this.onLarge?.()
      const pace = this.#paceOf(answer.status, size)
      largeAnswers.each([parts], () => this.#sendPaced(answer, joined(parts, size), pace))
    }
  }

  #sendPaced(answer: Answer, body: Uint8Array, pace: Pace): void {
    if (!this.#open) return
    this.#letGo()
    const writeHead = () => this.#answerHead(answer)
    if (this.#isLast) {
      const onEnd = () => pace.held(0)
      this.#sendLast({ status: answer.status, body, beforeTheRest: false, onEnd }, writeHead)
      return
    }
    this.#response.cork(() => {
      writeHead()
      this.#keepAlive()
      sendPaced(this.#response, body, pace)
    })
  }

  /** Gives back room as the body is sent. It must not reference the body, which would then stay in memory as long. */
  #paceOf(status: number, taken: number): Pace {
    let room = taken
    this.onGone(() => this.giveRoom(room))
    return {
      held: (bytes) => {
        this.giveRoom(room - bytes)
        room = bytes
        if (bytes === 0 && this.#open) this.#finish(status)
      },
    }
  }

  /** The principal, or address, whose share of bytes in memory the exchange takes; once it was admitted. */
  get owner(): string {
    if (this.#owner === '' && this.ownerOf !== undefined) this.#owner = this.ownerOf()
    return this.#owner
  }

  /** Takes room for bytes that wait for the reader; false if its principal, or all together, have too many. */
  takeRoom(bytes: number): boolean {
    return this.#unsent.take(this.owner, bytes)
  }

  giveRoom(bytes: number): void {
    this.#unsent.give(this.owner, bytes)
  }

  /**
   * Answers a refusal. `closing`: the connection is closed afterwards, and nothing else that arrived with the request
   * is carried out: it may be no request at all.
   */
  refuse(refusal: Refusal, more: { closing?: boolean; headers?: HeaderFields } = {}): void {
    if (!this.open) return
    this.#letGo()
    const status = statusOf(refusal)
    const text = JSON.stringify(problemOf(refusal, this.requestId))
    const writeHead = () => {
      this.#head({ status, contentType: 'application/problem+json', headers: more.headers })
      writeRefusalFields(this.#response, refusal, this.challenges)
    }
    if (more.closing === true) this.#sendLast({ status, body: text, beforeTheRest: true }, writeHead)
    else this.#send(status, text, writeHead)
  }

  /**
   * Begins an answer that is written in parts; `end` or `abort` finishes it. For HEAD it is finished at once, and the
   * exchange is no longer open.
   */
  begin(status: number, contentType: string, headers: HeaderFields): void {
    if (!this.#open) return
    this.#begun = true
    this.#letGo()
    this.#response.cork(() => {
      this.#head({ status, contentType, headers })
      this.#keepAlive()
      if (!this.headOnly) return
      this.#finish(status)
      this.#response.endWithoutBody()
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
   * Has `callback` called each time the socket takes more. The callback must always write something: the write that
   * failed has armed a timer of uWebSockets.js, which would otherwise close the connection.
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

  /** Closes the connection in the middle, so that the client sees that the answer is not whole. */
  abort(): void {
    if (this.#open) this.#response.close()
  }

  /** Receives the body, part by part; each part is valid only during the call. */
  onData(callback: ReceivePart): void {
    if (this.#held === undefined) this.#listen(callback)
    // Resumed first: after an answer by the callback, the response must not be used any more.
    else this.#held.take(callback, () => this.resume())
  }

  /**
   * Keeps what has arrived of the body until `onData`, and pauses the rest, while it is not yet known what to do with
   * the body. The HTTP library drops parts that are not taken immediately. Does nothing where it is kept already.
   * @param memoryOf what counts the bytes that are kept
   */
  holdBody(memoryOf: () => Upload): void {
    if (this.#held !== undefined) return
    const held = new HeldBody(memoryOf)
    this.#held = held
    this.onGone(() => held.drop())
    this.#listen((part, last) => held.add(part, last))
    this.pause()
  }

  #listen(receive: ReceivePart): void {
    const pass = (part: ArrayBuffer, last: boolean) => this.#pass(part, last, receive)
    const chunks = this.#isLast
      ? new ChunkGathering({ deliver: pass, refuse: (refusal) => this.#refuseBody(refusal) })
      : undefined
    this.#response.onData((part, last) => {
      this.#wholeBody ||= last
      // What follows a chunked body, trailers perhaps, is not to end the connection before its answer is out.
      if (last && chunks !== undefined && this.#open) this.#response.pause()
      if (last) this.#last?.bodyArrived()
      if (chunks === undefined) pass(part, last)
      else if (!chunks.add(part, last)) this.#response.close()
    })
  }

  /** Refuses a request in the middle of its body, whose reader is told that the client has gone. */
  #refuseBody(refusal: Refusal): void {
    const callbacks = this.#open ? this.#onGone.splice(0) : []
    this.refuse(refusal, { closing: true })
    for (const callback of callbacks) callback()
  }

  /**
   * uWebSockets.js passes on the rest of what arrived together even when the connection is paused, and with each 160
   * KiB starts a timer that closes it unless more arrives within ten seconds. Pausing it again stops that timer.
   */
  #pass(part: ArrayBuffer, last: boolean, receive: ReceivePart): void {
    const wasPaused = this.#paused
    receive(part, last)
    if (this.#open && wasPaused && this.#paused) this.#response.pause()
  }

  /** Skips the rest of a body that was held back: a connection that stays paused takes no next request. */
  #letGo(): void {
    this.#resume()
    if (this.#held?.isTaken === false) this.#held.drop()
  }

  pause(): void {
    if (!this.#open || this.#paused) return
    this.#paused = true
    this.#response.pause()
  }

  /**
   * Lets more of the body arrive. Does nothing once it is whole: uWebSockets.js would wait ten seconds for more, and
   * then close the connection.
   */
  resume(): void {
    if (!this.#wholeBody) this.#resume()
  }

  /** uWebSockets.js resets a resumed connection that is not paused at its next request; after a chunked body none is read. */
  #resume(): void {
    if (!this.#open || !this.#paused) return
    this.#paused = false
    if (!(this.#isLast && this.#wholeBody)) this.#response.resume()
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
      // Written as a header: if uWebSockets.js knew the length, it would consider the answer unfinished until that many
      // bytes were sent.
      if (!isBodiless(status)) this.#response.writeHeader('Content-Length', String(Buffer.byteLength(body)))
      this.#response.endWithoutBody()
    })
  }

  /** Answers so that nothing that follows on the connection is carried out. */
  #sendLast(
    { status, ...about }: { status: number } & Pick<LastAnswerParts, 'body' | 'beforeTheRest' | 'onEnd'>,
    writeHead: () => void,
  ): void {
    this.#finish(status)
    this.#last = new LastAnswer(this.#response, {
      writeHead: () => {
        writeHead()
        this.#response.writeHeader('Connection', 'close')
      },
      ...about,
      headOnly: this.headOnly,
      wholeBody: this.#wholeBody || about.beforeTheRest,
    })
  }

  #finish(status: number): void {
    this.#open = false
    this.#watch.done(status, performance.now() - this.#beganMs)
    this.onDone?.()
    this.#sent?.()
  }

  #gone(): void {
    this.#last?.gone()
    if (!this.#open) return
    this.#finish(0)
    for (const callback of this.#onGone) callback()
  }
}

/** Large answers go out one after the other, and the front thread serves others in between. */
const largeAnswers = new FanOut('later')
