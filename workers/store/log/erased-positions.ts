import { assert } from '../../../src/base/assert.js'
import { blockCount, eraseAt, recordAt } from '../tables/record-codec.js'
import type { RowChange } from './row-change.js'

/*
 * The log of a cluster contains the positions of erased records, not the changed block: a copy of the block
 * would contain the bodies of its other records, which may be erased later.
 */

/** The table number that marks such a change. */
export const erasedPositions = 255

/** Encodes which records of a block were erased. */
export function encodeErasedPositions({ table, key }: RowChange, positions: readonly number[]): RowChange {
  const value = Buffer.alloc(2 * positions.length)
  for (const [index, position] of positions.entries()) value.writeUInt16BE(position, 2 * index)
  return { table: erasedPositions, key: Buffer.concat([Buffer.of(table), key]), value }
}

/**
 * Decodes such a change into the change of its block.
 * @param blockOf reads the block before the change
 */
export function decodeErasedBlock(
  { key: encodedKey, value }: RowChange,
  blockOf: (table: number, key: Buffer) => Uint8Array | undefined,
): RowChange {
  const [table, key] = [encodedKey[0] ?? 0, encodedKey.subarray(1)]
  const before = blockOf(table, key)
  assert(before !== undefined && value !== undefined, 'an erased block was written before')
  const block = Buffer.from(before)
  for (let at = 0; at < value.length; at += 2) eraseAt(block, value.readUInt16BE(at))
  return { table, key, value: block }
}

/** The positions of the records that are erased in `after` and not in `before`. */
export function newlyErased(before: Uint8Array, after: Uint8Array): number[] {
  return Array.from({ length: blockCount(after) }, (_none, position) => position).filter(
    (position) =>
      recordAt(before, position).erased === undefined && recordAt(after, position).erased !== undefined,
  )
}
