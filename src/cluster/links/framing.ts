import { Packr, Unpackr } from 'msgpackr'
import { limits } from '../../base/limits/limits.js'

/*
 * The messages on a link between two nodes: a length of 4 bytes, a kind of 1 byte, and the content. The
 * content is a value as msgpack; or a shard number, 2 bytes, and a frame, which is passed on unchanged; or
 * the same of a late frame, with the term of its thread, 8 bytes; or a piece of a message that others may
 * overtake; or the number of bytes read from the peer's main connection.
 */

export type LinkMessage =
  | { kind: 'value'; value: unknown }
  | { kind: 'frame'; shard: number; frame: ArrayBuffer }
  /** An answer of a shard that may arrive after later frames. */
  | { kind: 'late'; shard: number; term: number; frame: ArrayBuffer }

/** A part of a large message, which is split so that others can be sent in between. */
export interface MessagePiece {
  kind: 'piece'
  /** The same for all pieces of a message. */
  id: number
  isLast: boolean
  bytes: Uint8Array
}

/** Messages of the link itself. */
type LinkPart = MessagePiece | { kind: 'read'; bytes: number }

const [VALUE, FRAME, LATE, PIECE, READ] = [0, 1, 2, 3, 4]
const LENGTH_BYTES = 4
const FRAME_HEAD_BYTES = 3
const LATE_HEAD_BYTES = 11
const PIECE_HEAD_BYTES = 6
const READ_BYTES = 9

// Sets and maps are preserved, as between threads.
const options = { structuredClone: true }
const packr = new Packr(options)
const unpackr = new Unpackr(options)

export function encodeValue(value: unknown): Buffer[] {
  const packed = packr.pack(value)
  return withHead(VALUE, 1, packed).parts
}

export function encodeFrame(shard: number, frame: ArrayBuffer): Buffer[] {
  const { head, parts } = withHead(FRAME, FRAME_HEAD_BYTES, Buffer.from(frame))
  head.writeUInt16BE(shard, LENGTH_BYTES + 1)
  return parts
}

export function encodeLate({ shard, term }: { shard: number; term: number }, frame: ArrayBuffer): Buffer[] {
  const { head, parts } = withHead(LATE, LATE_HEAD_BYTES, Buffer.from(frame))
  head.writeUInt16BE(shard, LENGTH_BYTES + 1)
  head.writeDoubleBE(term, LENGTH_BYTES + 3)
  return parts
}

export function encodePiece({ id, isLast, bytes }: Omit<MessagePiece, 'kind'>): Buffer[] {
  const { head, parts } = withHead(
    PIECE,
    PIECE_HEAD_BYTES,
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
  )
  head.writeUInt32BE(id, LENGTH_BYTES + 1)
  head[LENGTH_BYTES + 5] = isLast ? 1 : 0
  return parts
}

export function encodeRead(bytes: number): Buffer[] {
  const { head, parts } = withHead(READ, READ_BYTES, Buffer.alloc(0))
  head.writeDoubleBE(bytes, LENGTH_BYTES + 1)
  return parts
}

/** Decodes the message in the pieces, whose first bytes are its length. @throws Error if it is invalid */
export function messageOf(pieces: readonly Uint8Array[]): LinkMessage {
  const message = decode(Buffer.concat(pieces).subarray(LENGTH_BYTES))
  if (message.kind === 'piece' || message.kind === 'read')
    throw new Error('A link sent pieces of an invalid message')
  return message
}

function withHead(kind: number, headBytes: number, rest: Buffer): { head: Buffer; parts: Buffer[] } {
  const head = Buffer.alloc(LENGTH_BYTES + headBytes)
  head.writeUInt32BE(headBytes + rest.length)
  head[LENGTH_BYTES] = kind
  return { head, parts: rest.length === 0 ? [head] : [head, rest] }
}

/** Splits the bytes of a link into messages. */
export class MessageReader {
  readonly #take: (message: LinkMessage | LinkPart) => void
  readonly #head = Buffer.alloc(LENGTH_BYTES)
  #headBytes = 0
  /** The message being read, and how many of its bytes have arrived. */
  #message: Uint8Array | undefined
  #bytes = 0

  constructor(take: (message: LinkMessage | LinkPart) => void) {
    this.#take = take
  }

  /** @throws Error if the bytes are not a valid message */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#message === undefined) {
        at += this.#readHead(chunk.subarray(at))
        continue
      }
      const part = chunk.subarray(at, at + this.#message.length - this.#bytes)
      this.#message.set(part, this.#bytes)
      this.#bytes += part.length
      at += part.length
      if (this.#bytes < this.#message.length) continue
      const message = this.#message
      this.#message = undefined
      this.#take(decode(message))
    }
  }

  #readHead(chunk: Uint8Array): number {
    const part = chunk.subarray(0, LENGTH_BYTES - this.#headBytes)
    this.#head.set(part, this.#headBytes)
    this.#headBytes += part.length
    if (this.#headBytes === LENGTH_BYTES) {
      const length = this.#head.readUInt32BE()
      if (length < 2 || length > limits.linkMessageBytesMax)
        throw new Error(`Received an invalid message of ${length} bytes over a link`)
      this.#message = new Uint8Array(length)
      this.#bytes = 0
      this.#headBytes = 0
    }
    return part.length
  }
}

function decode(message: Uint8Array): LinkMessage | LinkPart {
  const [kind] = message
  const view = new DataView(message.buffer, message.byteOffset, message.length)
  if (kind === VALUE) return { kind: 'value', value: unpackr.unpack(message.subarray(1)) }
  // A frame needs its own memory, because it is transferred to a thread.
  if (kind === FRAME && message.length >= FRAME_HEAD_BYTES)
    return { kind: 'frame', shard: view.getUint16(1), frame: message.slice(FRAME_HEAD_BYTES).buffer }
  if (kind === LATE && message.length >= LATE_HEAD_BYTES) {
    const [shard, term] = [view.getUint16(1), view.getFloat64(3)]
    return { kind: 'late', shard, term, frame: Uint8Array.from(message.subarray(LATE_HEAD_BYTES)).buffer }
  }
  if (kind === PIECE && message.length >= PIECE_HEAD_BYTES) {
    const bytes = message.subarray(PIECE_HEAD_BYTES)
    return { kind: 'piece', id: view.getUint32(1), isLast: message[5] === 1, bytes }
  }
  if (kind === READ && message.length === READ_BYTES) return { kind: 'read', bytes: view.getFloat64(1) }
  throw new Error('A link sent an invalid message')
}
