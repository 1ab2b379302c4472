/** Decodes base64url text; undefined when the text is not canonical, so that each token has one spelling. */
export function fromBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** The byte order mark of UTF-8. It is not part of the text that follows it. */
export const byteOrderMark = [0xef, 0xbb, 0xbf] as const

/** A view of UTF-8 text without its byte order mark. */
export function withoutByteOrderMark(bytes: Uint8Array): Uint8Array {
  return byteOrderMark.every((byte, at) => bytes[at] === byte) ? bytes.subarray(byteOrderMark.length) : bytes
}

/** A Buffer over the same memory, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
