import { refuse, type Refusal } from '../../base/errors.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'
import type { OpenUploads } from '../limits/uploads.js'
import type { Answer, Principal } from '../routes/route.js'
import { type BodySink, readBody, refuseRest } from './body-stream.js'
import type { Exchange } from './exchange.js'

/** The next part of a body: bytes, its end, why it cannot be read further, or that the client has gone. */
export type BodyPart = { bytes: Buffer } | { ended: true } | { refusal: Refusal } | { gone: true }

/** How a body is taken part by part. */
interface Receiving {
  principal: Principal
  uploads: OpenUploads
  gzip: boolean
  isBinary?: boolean
  onError(error: unknown, requestId: string): void
}

/**
 * Takes a body part by part and sends the answer.
 * @param take reads it; `memory` counts what it keeps; undefined when the client has gone
 */
export function receiveBody(
  exchange: Exchange,
  { principal, uploads, gzip, isBinary, onError }: Receiving,
  take: (body: BodyQueue, memory: BodyMemory) => Promise<Answer | Refusal | undefined>,
): void {
  const memory = uploads.hold({ principal, owner: exchange.owner }, (refusal) => body.cut(refusal))
  const body = new BodyQueue(exchange, memory)
  const stopReading = readBody(exchange, { gzip, memory, isBinary }, body)
  take(body, memory)
    .then((answer) => {
      if (answer === undefined) return
      if ('code' in answer) refuseRest(exchange, answer)
      else exchange.answer(answer)
    })
    .catch((error: unknown) => {
      onError(error, exchange.requestId)
      const detail = 'The server failed; its log says why under the request id'
      refuseRest(exchange, refuse('internal_error', detail))
    })
    .finally(() => {
      stopReading()
      memory.release()
    })
}

/** A body whose parts are read one by one, with one more read ahead. */
export class BodyQueue implements BodySink {
  readonly #parts: { bytes: Buffer; more: () => void }[] = []
  /** How it ended, once all parts are taken. */
  #last: BodyPart | undefined
  #wake: (() => void) | undefined
  readonly #memory: BodyMemory
  /** Bytes of the part that was taken last, and is being worked on. */
  #takenBytes = 0

  /** @param memory counts the bytes of a part until the next one is taken */
  constructor(exchange: Exchange, memory: BodyMemory) {
    this.#memory = memory
    exchange.onGone(() => this.#break({ gone: true }))
  }

  push(bytes: Buffer, more: () => void): void {
    if (this.broken !== undefined || !this.#memory.add(bytes.length)) return
    this.#parts.push({ bytes, more })
    this.#wakeUp()
  }

  end(): void {
    this.#last ??= { ended: true }
    this.#wakeUp()
  }

  fail(refusal: Refusal): void {
    this.#last ??= { refusal }
    this.#wakeUp()
  }

  /** Stops the body: nothing more of it is taken, not even what has arrived. */
  cut(refusal: Refusal): void {
    this.#break({ refusal })
  }

  /** Why the body was cut off, or that the client has gone: no more work is to be done for it. */
  broken: Extract<BodyPart, { refusal: Refusal } | { gone: true }> | undefined

  /** Waits for the next part and has the one after it read meanwhile. */
  async next(): Promise<BodyPart> {
    this.#memory.give(this.#takenBytes)
    this.#takenBytes = 0
    while (this.#parts.length === 0 && this.#last === undefined && this.broken === undefined) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    if (this.broken !== undefined) return this.broken
    const part = this.#parts.shift()
    if (part === undefined) return this.#last ?? { gone: true }
    this.#takenBytes = part.bytes.length
    part.more()
    return { bytes: part.bytes }
  }

  #break(how: { refusal: Refusal } | { gone: true }): void {
    this.#parts.length = 0
    this.broken ??= how
    this.#wakeUp()
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
