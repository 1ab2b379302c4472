import { limits } from '../../base/limits/limits.js'
import type { MessagePiece } from './framing.js'

/** A message that others may overtake. */
export interface LateMessage {
  /** For whom it is: each one has its turn. */
  principal: string
  /** As they are framed. */
  parts: readonly Uint8Array[]
  /** To be called when the last piece of it was sent. */
  sent?(): void
}

/** What is sent next of a message, and what is to be called then. */
interface NextPiece extends Omit<MessagePiece, 'kind'> {
  sent?: (() => void) | undefined
}

/** One that waits, and how much of it was handed out. */
interface QueuedMessage extends LateMessage {
  id: number
  bytes: Uint8Array
  at: number
}

/** Messages that wait until there is nothing else to send: a piece for each principal in turn, bounded for each. */
export class LateQueue {
  /** The principal whose turn is next comes first. */
  readonly #principals = new Map<string, { waiting: QueuedMessage[]; bytes: number }>()
  #bytes = 0
  #nextId = 0

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** @returns false, and nothing is taken, where too much waits for that principal, or in all */
  add(message: LateMessage): boolean {
    const bytes = Buffer.concat(message.parts)
    const own = this.#principals.get(message.principal) ?? { waiting: [], bytes: 0 }
    const isFull =
      own.bytes + bytes.length > limits.linkAnswerBytesPerPrincipalMax ||
      this.#bytes + bytes.length > limits.linkAnswerBytesMax
    if (isFull) return false
    own.waiting.push({ ...message, id: this.#nextId, bytes, at: 0 })
    own.bytes += bytes.length
    this.#bytes += bytes.length
    this.#nextId = (this.#nextId + 1) >>> 0
    this.#principals.set(message.principal, own)
    return true
  }

  /** Hands the next piece out. @returns undefined where nothing waits */
  next(): NextPiece | undefined {
    for (const [principal, own] of this.#principals) {
      const [first] = own.waiting
      this.#principals.delete(principal)
      if (first === undefined) continue
      const bytes = first.bytes.subarray(first.at, first.at + limits.linkPieceBytes)
      first.at += bytes.length
      own.bytes -= bytes.length
      this.#bytes -= bytes.length
      const isLast = first.at === first.bytes.length
      if (isLast) own.waiting.shift()
      // To the end: others have their turn first.
      if (own.waiting.length > 0) this.#principals.set(principal, own)
      return { id: first.id, isLast, bytes, sent: isLast ? first.sent : undefined }
    }
    return undefined
  }
}
