/** Type and length of a message, whose length counts itself but not the type (PostgreSQL, Message Formats). */
const HEADER_BYTES = 5
const NOTICE = 'N'.charCodeAt(0)

/** Takes the notices out of the answers of a PostgreSQL connection that is not encrypted: nobody is warned of anything. */
export function withoutNotices(): (bytes: Buffer) => Buffer {
  let rest = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const kept: Buffer[] = []
    while (rest.length >= HEADER_BYTES) {
      const end = 1 + rest.readUInt32BE(1)
      if (rest.length < end) break
      if (rest[0] !== NOTICE) kept.push(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
    return Buffer.concat(kept)
  }
}
