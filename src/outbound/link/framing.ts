import { Packr, Unpackr } from 'msgpackr'
import { limits } from '../../base/limits.js'

/*
 * What goes over a link between two nodes: messages with their length before them, 4 bytes; then what they are, one byte;
 * and then a value as msgpack, or the number of a shard, 2 bytes, and a frame of it, which is passed on as it is.
 */

/** A message as it was read. */
export type LinkMessage =
  | { kind: 'value'; value: unknown }
  | { kind: 'frame'; shard: number; frame: ArrayBuffer }

const VALUE = 0
const FRAME = 1
const LENGTH_BYTES = 4
const FRAME_HEAD_BYTES = 3

// Sets and maps stay what they are, as between threads.
const options = { structuredClone: true }
const packr = new Packr(options)
const unpackr = new Unpackr(options)

export function encodeValue(value: unknown): Buffer[] {
  const packed = packr.pack(value)
  const head = Buffer.alloc(LENGTH_BYTES + 1)
  head.writeUInt32BE(1 + packed.length)
  head[LENGTH_BYTES] = VALUE
  return [head, packed]
}

export function encodeFrame(shard: number, frame: ArrayBuffer): Buffer[] {
  const head = Buffer.alloc(LENGTH_BYTES + FRAME_HEAD_BYTES)
  head.writeUInt32BE(FRAME_HEAD_BYTES + frame.byteLength)
  head[LENGTH_BYTES] = FRAME
  head.writeUInt16BE(shard, LENGTH_BYTES + 1)
  return [head, Buffer.from(frame)]
}

/** Puts the bytes of a link together to messages. */
export class MessageReader {
  readonly #take: (message: LinkMessage) => void
  readonly #head = Buffer.alloc(LENGTH_BYTES)
  #headBytes = 0
  /** The message that is being read, and how much of it is there. */
  #message: Uint8Array | undefined
  #bytes = 0

  constructor(take: (message: LinkMessage) => void) {
    this.#take = take
  }

  /** @throws Error when that is no message of a link */
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
        throw new Error(`A message of ${length} bytes came over a link`)
      this.#message = new Uint8Array(length)
      this.#bytes = 0
      this.#headBytes = 0
    }
    return part.length
  }
}

function decode(message: Uint8Array): LinkMessage {
  const [kind] = message
  if (kind === VALUE) return { kind: 'value', value: unpackr.unpack(message.subarray(1)) }
  if (kind !== FRAME || message.length < FRAME_HEAD_BYTES) throw new Error('A link sent what is no message')
  const shard = new DataView(message.buffer).getUint16(1)
  // Of its own, as it is handed over to a thread.
  return { kind: 'frame', shard, frame: message.slice(FRAME_HEAD_BYTES).buffer }
}
