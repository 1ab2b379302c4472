import type { Refusal } from '../base/errors.js'
import type { BodySink } from './body-stream.js'
import type { Exchange } from './exchange.js'

/** The next of a body: bytes, its end, why it cannot be read on, or that the client has gone. */
export type BodyPart = { bytes: Buffer } | { ended: true } | { refusal: Refusal } | { gone: true }

/** A body whose parts are asked for one by one; one more is read ahead. */
export class BodyQueue implements BodySink {
  readonly #parts: { bytes: Buffer; more: () => void }[] = []
  /** How it ended, once all parts are taken. */
  #last: BodyPart | undefined
  #wake: (() => void) | undefined

  constructor(exchange: Exchange) {
    exchange.onGone(() => this.#close({ gone: true }))
  }

  push(bytes: Buffer, more: () => void): void {
    this.#parts.push({ bytes, more })
    this.#wakeUp()
  }

  end(): void {
    this.#close({ ended: true })
  }

  fail(refusal: Refusal): void {
    this.#close({ refusal })
  }

  /** Waits for the next part and has the one behind it read meanwhile. */
  async next(): Promise<BodyPart> {
    while (this.#parts.length === 0 && this.#last === undefined) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const part = this.#parts.shift()
    if (part === undefined) return this.#last ?? { gone: true }
    part.more()
    return { bytes: part.bytes }
  }

  #close(last: BodyPart): void {
    if ('gone' in last) this.#parts.length = 0
    this.#last ??= last
    this.#wakeUp()
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
