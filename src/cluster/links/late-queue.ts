import { CallerTurns } from '../../base/caller-turns.js'
import { limits } from '../../base/limits/limits.js'
import { Quota } from '../../base/quota.js'
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

/** Messages that are sent only when nothing else waits, in pieces: principals take turns, and each has a limit. */
export class LateQueue {
  readonly #turns = new CallerTurns<QueuedMessage>()
  readonly #bytes = new Quota({
    max: limits.linkAnswerBytesMax,
    perHolderMax: limits.linkAnswerBytesPerPrincipalMax,
  })
  #nextId = 0

  get isEmpty(): boolean {
    return this.#turns.length === 0
  }

  /** @returns false, without adding, if too many bytes wait for that principal or in total */
  add(message: LateMessage): boolean {
    const bytes = Buffer.concat(message.parts)
    if (!this.#bytes.reserve(message.principal, bytes.length)) return false
    this.#turns.push(message.principal, { ...message, id: this.#nextId, bytes, at: 0 })
    this.#nextId = (this.#nextId + 1) >>> 0
    return true
  }

  /** Takes the next piece. @returns undefined if the queue is empty */
  next(): NextPiece | undefined {
    const first = this.#turns.peek()
    if (first === undefined) return undefined
    const bytes = first.bytes.subarray(first.at, first.at + limits.linkPieceBytes)
    first.at += bytes.length
    this.#bytes.release(first.principal, bytes.length)
    const isLast = first.at === first.bytes.length
    if (isLast) this.#turns.take()
    else this.#turns.pass()
    return { id: first.id, isLast, bytes, sent: isLast ? first.sent : undefined }
  }
}
