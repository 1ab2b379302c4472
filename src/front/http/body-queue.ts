import type { Refusal } from '../../base/errors.js'
import type { BodySink } from './body-stream.js'
import type { Exchange } from './exchange.js'
import type { BodyMemory } from '../../base/gathered-bytes.js'

/** The next part of a body: bytes, its end, why it cannot be read further, or that the client has gone. */
export type BodyPart = { bytes: Buffer } | { ended: true } | { refusal: Refusal } | { gone: true }

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
