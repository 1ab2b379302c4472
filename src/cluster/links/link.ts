import type { TLSSocket } from 'node:tls'
import { limits } from '../../base/limits/limits.js'
import { machineClock } from '../../base/clock.js'
import {
  type LinkMessage,
  MessageReader,
  type MessagePiece,
  encodeFrame,
  encodePiece,
  encodeRead,
  encodeValue,
  messageOf,
} from './framing.js'
import { LateQueue, type LateMessage } from './late-queue.js'
import type { LinkSockets } from './sockets.js'

/** Receives the messages and the end of a link. */
export interface LinkListener {
  message(message: LinkMessage): void
  /** The link has ended, or the peer sent an invalid message; called once. */
  closed(reason: string): void
}

/**
 * One end of a link, with two connections. The main one keeps the order of messages; large messages that
 * others may overtake are split into pieces there, few of them in flight. The urgent one is for messages that
 * must not wait; its order is independent of the main one.
 */
export class Link {
  readonly #urgent: SocketWriter
  readonly #main: SocketWriter
  readonly #late = new LateQueue()
  /** Received pieces, by the ids of their messages. */
  readonly #pieces = new Map<number, Uint8Array[]>()
  readonly #listener: LinkListener
  #isOver = false
  #reason = 'the peer closed the link'
  /**
   * Bytes sent on the main connection, how many of them the peer has acknowledged, and when that last
   * increased.
   */
  #sentBytes = 0
  #takenBytes = 0
  #takenAtMs = machineClock()
  /** Bytes read from the main connection, and how many of them were acknowledged. */
  #readBytes = 0
  #reportedBytes = 0

  constructor({ urgent, main }: LinkSockets, listener: LinkListener) {
    this.#listener = listener
    const full = () => this.close('the peer does not read')
    this.#urgent = new SocketWriter(urgent, full)
    this.#main = new SocketWriter(main, full)
    this.#listen(urgent, () => {})
    this.#listen(main, (bytes) => {
      this.#readBytes += bytes
      if (this.#readBytes - this.#reportedBytes >= limits.linkReadAckBytes) this.#sendRead()
    })
    // The urgent connection ends first only when it breaks.
    urgent.once('close', () => main.destroy())
    main.once('close', () => {
      urgent.destroy()
      this.#end(this.#reason)
    })
  }

  /** Sends a message after all earlier ones. */
  send(value: unknown): void {
    this.#sendMain(encodeValue(value))
  }

  /** Sends a message that must not wait for others. */
  sendUrgent(value: unknown): void {
    this.#urgent.write(encodeValue(value))
  }

  sendFrame(shard: number, frame: ArrayBuffer): void {
    this.#sendMain(encodeFrame(shard, frame))
  }

  /** Sends a message that others may overtake. @returns false, without sending, if too much is queued */
  sendLate(message: LateMessage): boolean {
    if (this.#isOver || !this.#late.add(message)) return this.#isOver
    this.#sendPieces()
    return true
  }

  /** Sends a short message in order, and a long one as `sendLate` does. */
  sendBySize(value: unknown, principal: string): boolean {
    const parts = encodeValue(value)
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    if (bytes >= limits.linkSplitBytesMin) return this.sendLate({ principal, parts })
    this.#sendMain(parts)
    return true
  }

  /**
   * Acknowledges what was read, and closes the link if the peer acknowledges nothing. Call it at intervals.
   */
  look(nowMs: number): void {
    if (this.#readBytes > this.#reportedBytes) this.#sendRead()
    const isWaiting = this.#sentBytes > this.#takenBytes
    if (isWaiting && nowMs - this.#takenAtMs > limits.linkTimeoutMs)
      this.close('the peer does not acknowledge what was sent')
  }

  /** Closes the link after everything was sent; later messages are dropped. */
  finish(): void {
    this.#sendPieces(Infinity)
    this.#reason = 'this node closed the link'
    this.#main.finish()
  }

  /** Closes the link immediately: `closed` is called with the reason. */
  close(reason: string): void {
    this.#urgent.destroy()
    this.#main.destroy()
    this.#end(reason)
  }

  #listen(socket: TLSSocket, read: (bytes: number) => void): void {
    const reader = new MessageReader((message) => {
      if (message.kind === 'piece') this.#takePiece(message)
      else if (message.kind === 'read') this.#acknowledge(message.bytes)
      else this.#listener.message(message)
    })
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      if (this.#isOver) return
      try {
        reader.push(chunk)
        read(chunk.length)
      } catch (error) {
        this.close(error instanceof Error ? error.message : String(error))
      }
    })
    socket.on('error', (error) => (this.#reason = error.message))
    socket.resume()
  }

  #sendMain(parts: readonly Buffer[]): void {
    if (this.#sentBytes === this.#takenBytes) this.#takenAtMs = machineClock()
    this.#sentBytes += this.#main.write(parts)
  }

  /** Sends as many pieces as may be in flight: a later message waits for no more than these. */
  #sendPieces(bytesMax: number = limits.linkPiecesBytes): void {
    while (this.#sentBytes - this.#takenBytes < bytesMax) {
      const piece = this.#late.next()
      if (piece === undefined) return
      this.#sendMain(encodePiece(piece))
      piece.sent?.()
    }
  }

  #acknowledge(bytes: number): void {
    if (bytes > this.#takenBytes) this.#takenAtMs = machineClock()
    this.#takenBytes = bytes
    this.#sendPieces()
  }

  #sendRead(): void {
    this.#reportedBytes = this.#readBytes
    this.#urgent.write(encodeRead(this.#readBytes))
  }

  #takePiece({ id, isLast, bytes }: MessagePiece): void {
    const pieces = this.#pieces.get(id) ?? []
    pieces.push(bytes)
    if (!isLast) return void this.#pieces.set(id, pieces)
    this.#pieces.delete(id)
    return this.#listener.message(messageOf(pieces))
  }

  #end(reason: string): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#pieces.clear()
    this.#listener.closed(reason)
  }
}

/**
 * Writes to one connection. Batches the messages of one turn of the event loop, because each write has a
 * fixed cost.
 */
class SocketWriter {
  readonly #socket: TLSSocket
  readonly #full: () => void
  #unsent: Buffer[] = []
  #unsentBytes = 0
  #isOver = false

  /** @param full called when too many bytes are unsent */
  constructor(socket: TLSSocket, full: () => void) {
    this.#socket = socket
    this.#full = full
  }

  /** @returns the number of bytes */
  write(parts: readonly Buffer[]): number {
    if (this.#isOver) return 0
    if (this.#unsent.length === 0) setImmediate(() => this.#flush())
    const before = this.#unsentBytes
    for (const part of parts) {
      this.#unsent.push(part)
      this.#unsentBytes += part.length
    }
    const bytes = this.#unsentBytes - before
    if (this.#unsentBytes + this.#socket.writableLength > limits.linkUnsentBytesMax) this.#full()
    return bytes
  }

  finish(): void {
    this.#flush()
    this.#isOver = true
    this.#socket.end()
  }

  destroy(): void {
    this.#isOver = true
    this.#socket.destroy()
  }

  #flush(): void {
    if (this.#unsent.length === 0) return
    const bytes = Buffer.concat(this.#unsent, this.#unsentBytes)
    this.#unsent = []
    this.#unsentBytes = 0
    if (this.#socket.writable) this.#socket.write(bytes)
  }
}
