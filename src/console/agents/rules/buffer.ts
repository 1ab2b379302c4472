/*
 * The part of Node's Buffer that the server's rules use (src/strand/condition.ts, json-fields.ts and
 * json.ts), for browsers. The build substitutes it for Buffer and node:buffer (scripts/console.mjs), so the
 * console runs the server's code.
 */

const CHUNK_BYTES = 8_192
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes with the methods of Buffer that the rules use. */
class Bytes extends Uint8Array {
  /** The text of a range of the bytes. */
  override toString(encoding: 'latin1' | 'utf8' = 'utf8', from = 0, to = this.length): string {
    const part = new Uint8Array(this.buffer, this.byteOffset + from, Math.max(0, to - from))
    if (encoding === 'utf8') return decoder.decode(part)
    let text = ''
    for (let at = 0; at < part.length; at += CHUNK_BYTES)
      text += String.fromCharCode(...part.subarray(at, at + CHUNK_BYTES))
    return text
  }

  /** Compares a range of these bytes with a range of others. @returns -1, 0 or 1 */
  compare(other: Uint8Array, ...range: [from: number, to: number, ownFrom: number, ownTo: number]): number {
    const [from, to, ownFrom, ownTo] = range
    const length = Math.min(to - from, ownTo - ownFrom)
    for (let at = 0; at < length; at += 1) {
      const difference = (this[ownFrom + at] ?? 0) - (other[from + at] ?? 0)
      if (difference !== 0) return Math.sign(difference)
    }
    return Math.sign(ownTo - ownFrom - (to - from))
  }
}

/** The static functions of Buffer. */
export const Buffer = {
  /** The UTF-8 bytes of a text, or a view on a range of memory. */
  from(source: string | ArrayBuffer, byteOffset?: number, length?: number): Bytes {
    return typeof source === 'string'
      ? new Bytes(new TextEncoder().encode(source).buffer)
      : new Bytes(source, byteOffset, length)
  },

  isBuffer(value: unknown): boolean {
    return value instanceof Bytes
  },
}

/** Whether all bytes are below 128. */
export function isAscii(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte < 0x80)
}

/** Whether bytes are UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes).length <= bytes.length
  } catch {
    // Invalid UTF-8 is the only cause of an error.
    return false
  }
}
