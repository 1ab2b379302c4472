import { limits } from '../../base/limits/limits.js'
import type { MessagePiece } from './framing.js'

/** A message that others may overtake. */
export interface LateMessage {
  /** The caller that receives it; callers are served round-robin. */
  principal: string
  /** The framed bytes. */
  parts: readonly Uint8Array[]
  /** Called when its last piece was sent. */
  sent?(): void
}

/** The next piece to send, and the callback for when it was sent. */
interface NextPiece extends Omit<MessagePiece, 'kind'> {
  sent?: (() => void) | undefined
}

/** A queued message; `at` is the offset of its next piece. */
interface QueuedMessage extends LateMessage {
  id: number
  bytes: Uint8Array
  at: number
}

/**
 * Messages that are sent only when nothing else waits: pieces in round-robin order of principals, bounded for
 * each principal.
 */
export class LateQueue {
  /** In round-robin order: the principal to serve next comes first. */
  readonly #principals = new Map<string, { queued: QueuedMessage[]; bytes: number }>()
  #bytes = 0
  #nextId = 0

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** @returns false, without adding, if too many bytes wait for that principal or in total */
  add(message: LateMessage): boolean {
    const bytes = Buffer.concat(message.parts)
    const own = this.#principals.get(message.principal) ?? { queued: [], bytes: 0 }
    const isFull =
      own.bytes + bytes.length > limits.linkAnswerBytesPerPrincipalMax ||
      this.#bytes + bytes.length > limits.linkAnswerBytesMax
    if (isFull) return false
    own.queued.push({ ...message, id: this.#nextId, bytes, at: 0 })
    own.bytes += bytes.length
    this.#bytes += bytes.length
    this.#nextId = (this.#nextId + 1) >>> 0
    this.#principals.set(message.principal, own)
    return true
  }

  /** Takes the next piece. @returns undefined if the queue is empty */
  next(): NextPiece | undefined {
    for (const [principal, own] of this.#principals) {
      const [first] = own.queued
      this.#principals.delete(principal)
      if (first === undefined) continue
      const bytes = first.bytes.subarray(first.at, first.at + limits.linkPieceBytes)
      first.at += bytes.length
      own.bytes -= bytes.length
      this.#bytes -= bytes.length
      const isLast = first.at === first.bytes.length
      if (isLast) own.queued.shift()
      // Moves the principal to the end of the order.
      if (own.queued.length > 0) this.#principals.set(principal, own)
      return { id: first.id, isLast, bytes, sent: isLast ? first.sent : undefined }
    }
    return undefined
  }
}
