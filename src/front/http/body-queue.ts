import { refuse, type Refusal } from '../../base/errors.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'
import type { OpenTransfers, Transfer } from '../limits/transfers.js'
import type { Answer, Principal } from '../routes/route.js'
import { type BodySink, readBody } from './body-stream.js'
import type { Exchange } from './exchange.js'

/** The next part of a body: bytes, its end, an error, or that the client has disconnected. */
export type BodyPart = { bytes: Buffer } | { ended: true } | { refusal: Refusal } | { gone: true }

interface Receiving {
  principal: Principal
  transfers: OpenTransfers
  gzip: boolean
  isBinary?: boolean
  onError(error: unknown, requestId: string): void
}

/**
 * Receives a body part by part and sends the answer.
 * @param take reads the body; `memory` counts the bytes that it keeps; returns undefined if the client has
 * disconnected
 */
export function receiveBody(
  exchange: Exchange,
  { principal, transfers, gzip, isBinary, onError }: Receiving,
  take: (body: BodyQueue, memory: Transfer) => Promise<Answer | Refusal | undefined>,
): void {
  const memory = transfers.begin({ principal, holder: exchange.holder }, (refusal) => body.cancel(refusal))
  const body = new BodyQueue(exchange, memory)
  const stopReading = readBody(exchange, { gzip, memory, isBinary }, body)
  take(body, memory)
    .then((answer) => {
      if (answer === undefined) return
      if ('code' in answer) exchange.refuse(answer)
      else exchange.answer(answer)
    })
    .catch((error: unknown) => {
      onError(error, exchange.requestId)
      const detail = 'Internal error: the server log has the cause under this request id'
      exchange.refuse(refuse('internal_error', detail))
    })
    .finally(() => {
      stopReading()
      memory.finish()
    })
}

/** A body whose parts are read one by one, with one part read ahead. */
export class BodyQueue implements BodySink {
  readonly #parts: { bytes: Buffer; more: () => void }[] = []
  /** The end of the body, after all parts. */
  #last: BodyPart | undefined
  #wake: (() => void) | undefined
  readonly #memory: BodyMemory
  /** Bytes of the last returned part, which is being processed. */
  #takenBytes = 0

  /** @param memory counts the bytes of a part until the next one is requested */
  constructor(exchange: Exchange, memory: BodyMemory) {
    this.#memory = memory
    exchange.onDisconnect(() => this.#break({ gone: true }))
  }

  push(bytes: Buffer, more: () => void): void {
    if (this.interruption !== undefined || !this.#memory.reserve(bytes.length)) return
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

  /** Cancels the body: returns nothing more of it, not even parts that have arrived. */
  cancel(refusal: Refusal): void {
    this.#break({ refusal })
  }

  /** Called when `interruption` is set. */
  onInterrupted: (() => void) | undefined

  /** Why the body was cancelled, or that the client has disconnected; no more work should be done for it. */
  interruption: Extract<BodyPart, { refusal: Refusal } | { gone: true }> | undefined

  /** Waits for the next part, and lets the part after it arrive in the meantime. */
  async next(): Promise<BodyPart> {
    this.#memory.release(this.#takenBytes)
    this.#takenBytes = 0
    while (this.#parts.length === 0 && this.#last === undefined && this.interruption === undefined) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    if (this.interruption !== undefined) return this.interruption
    const part = this.#parts.shift()
    if (part === undefined) return this.#last ?? { gone: true }
    this.#takenBytes = part.bytes.length
    part.more()
    return { bytes: part.bytes }
  }

  #break(how: { refusal: Refusal } | { gone: true }): void {
    this.#parts.length = 0
    this.interruption ??= how
    this.onInterrupted?.()
    this.#wakeUp()
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
