import { crc32 } from 'node:zlib'

/*
 * Rows end in a CRC-32 of key and value, by which a row that has changed on the disk is noticed
 * (docs/adr/0024-damage.md).
 */

/** Bytes of a row after its value. */
export const ROW_CHECKSUM_BYTES = 4

/** A row as it is kept. */
export function rowOf(key: Uint8Array, value: Uint8Array): Buffer {
  const row = Buffer.allocUnsafe(value.length + ROW_CHECKSUM_BYTES)
  row.set(value)
  row.writeUInt32LE(crc32(value, crc32(key)), value.length)
  return row
}

/** Whether a row is as it was written, under the key under which it was. */
export function isWholeRow(key: Uint8Array, row: Buffer): boolean {
  const end = row.length - ROW_CHECKSUM_BYTES
  return end >= 0 && crc32(row.subarray(0, end), crc32(key)) === row.readUInt32LE(end)
}
