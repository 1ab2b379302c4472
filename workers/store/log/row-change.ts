import { assert } from '../../../src/base/assert.js'
import type { SegmentContent } from './segment.js'

/** A put or, without a value, a removal of one row. */
export interface RowChange {
  table: number
  key: Buffer
  /** The stored value, with its checksum. */
  value: Buffer | undefined
}

const HEAD_BYTES = 7

/** Bytes of a change in a segment. */
export function changeBytes({ key, value }: RowChange): number {
  return HEAD_BYTES + key.length + (value?.length ?? 0)
}

/**
 * Encodes changes, one after the other: number of the table u8, length of the key u16, length of the value
 * plus one u32 (zero for a removal), key, value.
 */
export function encodeChanges(changes: readonly RowChange[]): SegmentContent {
  const bytes = changes.reduce((sum, change) => sum + changeBytes(change), 0)
  return { bytes, write: (into) => writeChanges(into, changes) }
}

function writeChanges(encoded: Buffer, changes: readonly RowChange[]): void {
  let at = 0
  for (const change of changes) {
    at = writeHead(encoded, at, change)
    if (change.value === undefined) continue
    encoded.set(change.value, at)
    at += change.value.length
  }
}

/** Writes everything before the value. @returns the offset after it */
export function writeHead(encoded: Buffer, at: number, { table, key, value }: RowChange): number {
  encoded[at] = table
  encoded.writeUInt16BE(key.length, at + 1)
  encoded.writeUInt32BE(value === undefined ? 0 : value.length + 1, at + 3)
  encoded.set(key, at + HEAD_BYTES)
  return at + HEAD_BYTES + key.length
}

/** Decodes changes; keys and values are views of `encoded`. @throws Error if the bytes are truncated */
export function* decodeChanges(encoded: Buffer): Generator<RowChange> {
  for (let at = 0; at < encoded.length;) {
    const keyAt = at + HEAD_BYTES
    assert(keyAt <= encoded.length, 'a change is whole')
    const valueAt = keyAt + encoded.readUInt16BE(at + 1)
    const valueBytes = encoded.readUInt32BE(at + 3) - 1
    const end = valueAt + Math.max(0, valueBytes)
    assert(end <= encoded.length, 'a change is whole')
    const value = valueBytes < 0 ? undefined : encoded.subarray(valueAt, end)
    yield { table: encoded[at] ?? 0, key: encoded.subarray(keyAt, valueAt), value }
    at = end
  }
}
