import { assert } from '../../../src/base/assert.js'
import { blockCount, eraseAt, recordAt } from '../tables/record-codec.js'
import type { RowChange } from './row-change.js'

/*
 * How the log of a cluster says that records were erased: by their places. A block that came with them would bring the
 * bodies of its other records along, which may be erased later.
 */

/** The number of a table that stands for this. */
export const erasedInPlace = 255

/** Says which records of a block were erased. */
export function erasedPlaces({ table, key }: RowChange, positions: readonly number[]): RowChange {
  const value = Buffer.alloc(2 * positions.length)
  for (const [index, position] of positions.entries()) value.writeUInt16BE(position, 2 * index)
  return { table: erasedInPlace, key: Buffer.concat([Buffer.of(table), key]), value }
}

/**
 * The change of the block that such a change stands for.
 * @param blockOf the block as it is before
 */
export function erasedBlock(
  { key: named, value }: RowChange,
  blockOf: (table: number, key: Buffer) => Uint8Array | undefined,
): RowChange {
  const [table, key] = [named[0] ?? 0, named.subarray(1)]
  const before = blockOf(table, key)
  assert(before !== undefined && value !== undefined, 'what is erased was written before')
  const block = Buffer.from(before)
  for (let at = 0; at < value.length; at += 2) eraseAt(block, value.readUInt16BE(at))
  return { table, key, value: block }
}

/** The records of a block that are erased in one state of it and not in the one before. */
export function newlyErased(before: Uint8Array, after: Uint8Array): number[] {
  return Array.from({ length: blockCount(after) }, (_none, position) => position).filter(
    (position) =>
      recordAt(before, position).erased === undefined && recordAt(after, position).erased !== undefined,
  )
}
