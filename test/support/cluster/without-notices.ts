/**
 * Type and length of a message; the length includes itself but not the type (PostgreSQL, Message Formats).
 */
const HEADER_BYTES = 5
const NOTICE = 'N'.charCodeAt(0)

/**
 * Removes the notices from the answers of an unencrypted PostgreSQL connection, so that no warning arrives.
 */
export function withoutNotices(): (bytes: Buffer) => Buffer {
  let rest = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const passed: Buffer[] = []
    while (rest.length >= HEADER_BYTES) {
      const end = 1 + rest.readUInt32BE(1)
      if (rest.length < end) break
      if (rest[0] !== NOTICE) passed.push(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
    return Buffer.concat(passed)
  }
}
