/** A value to encode; `encoded` is CBOR that is copied unchanged. */
type CborValue = number | string | Buffer | { encoded: Buffer }

/** A CBOR map (RFC 8949) of integers, texts and byte strings, as needed by authenticators. */
export function cborMap(entries: readonly (readonly [number | string, CborValue])[]): Buffer {
  return Buffer.concat([head(5, entries.length), ...entries.flat().map(encode)])
}

function encode(value: CborValue): Buffer {
  if (typeof value === 'number') return value >= 0 ? head(0, value) : head(1, -1 - value)
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value])
  if (typeof value === 'object') return value.encoded
  const text = Buffer.from(value)
  return Buffer.concat([head(3, text.length), text])
}

function head(major: number, argument: number): Buffer {
  const type = major << 5
  if (argument < 24) return Buffer.of(type | argument)
  if (argument < 256) return Buffer.of(type | 24, argument)
  return Buffer.of(type | 25, argument >> 8, argument & 0xff)
}
