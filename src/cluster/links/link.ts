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

/** What the other end does. */
export interface LinkListener {
  message(message: LinkMessage): void
  /** It has gone, or sent what is no message; called once. */
  closed(reason: string): void
}

/**
 * One end of a link. Its main connection carries messages in their order; what others may overtake goes there in pieces, few of
 * which are under way at a time. What has to come in time goes by the urgent one, and in no order with what goes by the other.
 */
export class Link {
  readonly #urgent: SocketWriter
  readonly #main: SocketWriter
  readonly #late = new LateQueue()
  /** Pieces that have come, by the ids of their messages. */
  readonly #pieces = new Map<number, Uint8Array[]>()
  readonly #listener: LinkListener
  #isOver = false
  #reason = 'the other node closed it'
  /** Bytes of the main connection that were sent, those that the other node has read, and when it last said so. */
  #sentBytes = 0
  #takenBytes = 0
  #takenAtMs = machineClock()
  /** Those that this node has read, and how many it has said so of. */
  #readBytes = 0
  #saidBytes = 0

  constructor({ urgent, main }: LinkSockets, listener: LinkListener) {
    this.#listener = listener
    const full = () => this.close('the other node does not read')
    this.#urgent = new SocketWriter(urgent, full)
    this.#main = new SocketWriter(main, full)
    this.#listen(urgent, () => {})
    this.#listen(main, (bytes) => {
      this.#readBytes += bytes
      if (this.#readBytes - this.#saidBytes >= limits.linkReadSaidBytes) this.#sayRead()
    })
    // That ends first only where it breaks.
    urgent.once('close', () => main.destroy())
    main.once('close', () => {
      urgent.destroy()
      this.#end(this.#reason)
    })
  }

  /** Sends a message behind all that were sent before. */
  send(value: unknown): void {
    this.#sendMain(encodeValue(value))
  }

  /** Sends one that is not to wait for others. */
  sendUrgent(value: unknown): void {
    this.#urgent.write(encodeValue(value))
  }

  sendFrame(shard: number, frame: ArrayBuffer): void {
    this.#sendMain(encodeFrame(shard, frame))
  }

  /** Sends one that others may overtake. @returns false, and nothing is sent, where too much waits already */
  sendLate(message: LateMessage): boolean {
    if (this.#isOver || !this.#late.add(message)) return this.#isOver
    this.#sendPieces()
    return true
  }

  /** Sends a message in order where it is short, and otherwise one that others may overtake. */
  sendBySize(value: unknown): void {
    const parts = encodeValue(value)
    const bytes = parts.reduce((sum, part) => sum + part.length, 0)
    if (bytes < limits.linkLateBytesMin) this.#sendMain(parts)
    else if (!this.sendLate({ principal: '', parts })) this.close('the other node does not read')
  }

  /** Says how much was read, and ends the link where the other node reads nothing of what it was sent. To be called often. */
  look(nowMs: number): void {
    if (this.#readBytes > this.#saidBytes) this.#sayRead()
    const isWaiting = this.#sentBytes > this.#takenBytes
    if (isWaiting && nowMs - this.#takenAtMs > limits.linkSilenceMs)
      this.close('nothing of what was sent arrives')
  }

  /** Ends it once everything is sent; what is to be sent later is dropped. */
  finish(): void {
    this.#sendPieces(Infinity)
    this.#reason = 'this node ended it'
    this.#main.finish()
  }

  /** Ends it at once: `closed` is called with the reason. */
  close(reason: string): void {
    this.#urgent.destroy()
    this.#main.destroy()
    this.#end(reason)
  }

  #listen(socket: TLSSocket, read: (bytes: number) => void): void {
    const reader = new MessageReader((message) => {
      if (message.kind === 'piece') this.#takePiece(message)
      else if (message.kind === 'read') this.#wasRead(message.bytes)
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

  /** As many as may be under way: what is sent next waits for no more than these. */
  #sendPieces(bytesMax: number = limits.linkPiecesBytes): void {
    while (this.#sentBytes - this.#takenBytes < bytesMax) {
      const piece = this.#late.next()
      if (piece === undefined) return
      this.#sendMain(encodePiece(piece))
      piece.sent?.()
    }
  }

  #wasRead(bytes: number): void {
    if (bytes > this.#takenBytes) this.#takenAtMs = machineClock()
    this.#takenBytes = bytes
    this.#sendPieces()
  }

  #sayRead(): void {
    this.#saidBytes = this.#readBytes
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

/** What is written to one connection: the messages of one turn of the event loop as one, since each write costs as much, whatever it contains. */
class SocketWriter {
  readonly #socket: TLSSocket
  readonly #full: () => void
  #unsent: Buffer[] = []
  #unsentBytes = 0
  #isOver = false

  /** @param full called when more waits than may */
  constructor(socket: TLSSocket, full: () => void) {
    this.#socket = socket
    this.#full = full
  }

  /** @returns how many bytes that are */
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
