/** The bytes of base64url text; undefined unless it is exactly what an encoder writes: one token has one spelling. */
export function fromBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** The byte order mark of UTF-8: no part of the text that begins with it. */
export const byteOrderMark = [0xef, 0xbb, 0xbf] as const

/** A text in UTF-8 without its byte order mark; the same memory, nothing copied. */
export function withoutMark(bytes: Uint8Array): Uint8Array {
  return byteOrderMark.every((byte, at) => bytes[at] === byte) ? bytes.subarray(byteOrderMark.length) : bytes
}

/** Bytes as a Buffer over the same memory, nothing copied: for Buffer's readers and writers. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
