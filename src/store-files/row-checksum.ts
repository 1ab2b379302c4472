import { crc32 } from 'node:zlib'

/* Rows end in a CRC-32 of key and value, which detects damage on disk (docs/adr/0024-damage.md). */

/** Bytes of the checksum after the value. */
export const ROW_CHECKSUM_BYTES = 4

export function rowOf(key: Uint8Array, value: Uint8Array): Buffer {
  const row = Buffer.allocUnsafe(value.length + ROW_CHECKSUM_BYTES)
  row.set(value)
  row.writeUInt32LE(crc32(value, crc32(key)), value.length)
  return row
}

export function isWholeRow(key: Uint8Array, row: Buffer): boolean {
  const end = row.length - ROW_CHECKSUM_BYTES
  return end >= 0 && crc32(row.subarray(0, end), crc32(key)) === row.readUInt32LE(end)
}
