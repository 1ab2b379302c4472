import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import {
  blockCount,
  encodeBlock,
  hlcMsAt,
  isIngestedAt,
  recordAt,
  recordBytes,
  type StoredRecord,
} from '../../../../workers/store/tables/record-codec.js'
import {
  decodeRun,
  encodeRun,
  packLocation,
  positionInRun,
  runKey,
  runLength,
  unpackLocation,
} from '../../../../workers/store/tables/tables.js'

const u48 = fc.integer({ min: 0, max: 2 ** 48 - 1 })
const hash = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'))
const bytes = (count: number) => fc.uint8Array({ minLength: count, maxLength: count })

const fields = {
  agentNo: fc.nat({ max: 2 ** 32 - 1 }),
  seq: u48,
  hlc: fc.record({ ms: u48, counter: fc.nat({ max: 0xffff }) }),
  type: fc.stringMatching(/^[a-z0-9_./-]{1,64}$/),
  hash,
  prev: hash,
  keyIndex: fc.nat({ max: 255 }),
  salt: bytes(16),
  body: fc.uint8Array({ maxLength: 500 }),
}
const storedRecord: fc.Arbitrary<StoredRecord> = fc.oneof(
  fc.record({ ...fields, signature: bytes(64) }),
  fc.record({ ...fields, sealedBy: u48 }),
  fc.record({ ...fields, signature: bytes(64), ingested: fc.constant(true) }),
  fc.record({ ...fields, sealedBy: u48, ingested: fc.constant(true) }),
)

/** The record with plain arrays, so that a view compares equal to a copy. */
function plain(record: StoredRecord) {
  const { salt, body, signature, ...rest } = record
  return { ...rest, salt: [...salt], body: [...body], signature: signature && [...signature] }
}

describe('a block', () => {
  it('returns its records by position', () => {
    fc.assert(
      fc.property(fc.array(storedRecord, { minLength: 1, maxLength: 20 }), (records) => {
        const block = encodeBlock(records)
        expect(blockCount(block)).toBe(records.length)
        for (const [position, record] of records.entries()) {
          expect(plain(recordAt(block, position))).toEqual(plain(record))
          expect(isIngestedAt(block, position)).toBe(record.ingested === true)
          expect(hlcMsAt(block, position)).toBe(record.hlc.ms)
        }
      }),
    )
  })

  it('is as long as its records and its table of offsets', () => {
    fc.assert(
      fc.property(fc.array(storedRecord, { minLength: 1, maxLength: 20 }), (records) => {
        const table = 2 + 4 * (records.length + 1)
        expect(encodeBlock(records)).toHaveLength(
          records.reduce((sum, record) => sum + recordBytes(record), table),
        )
      }),
    )
  })

  it('throws for a position after its last', () => {
    fc.assert(
      fc.property(fc.array(storedRecord, { minLength: 1, maxLength: 5 }), (records) => {
        expect(() => recordAt(encodeBlock(records), records.length)).toThrow('within the block')
      }),
    )
  })

  it('throws when any bit of it has changed, and never returns another record', () => {
    fc.assert(
      fc.property(storedRecord, fc.nat(), fc.nat({ max: 7 }), (record, seed, bit) => {
        const block = encodeBlock([record])
        const at = seed % block.length
        block[at] = (block[at] ?? 0) ^ (1 << bit)
        let read: StoredRecord | undefined
        try {
          read = recordAt(block, 0)
        } catch (error) {
          expect(String(error)).toMatch(/Assertion failed|out of range/)
        }
        // Only a change of the count can leave the record valid.
        if (read !== undefined)
          expect({ at: at < 2, record: plain(read) }).toEqual({ at: true, record: plain(record) })
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('a record that was imported erased', () => {
  it('stores no body, and decodes like a record that was erased here', () => {
    fc.assert(
      fc.property(storedRecord, storedRecord, (record, other) => {
        const erased = { ...record, erased: true as const }
        const block = encodeBlock([erased, other])
        expect(recordBytes(erased)).toBe(recordBytes({ ...record, body: Buffer.alloc(0) }))
        const expected = { ...erased, salt: Buffer.alloc(16), body: Buffer.from('null') }
        expect(plain(recordAt(block, 0))).toEqual(plain(expected))
        expect(plain(recordAt(block, 1))).toEqual(plain(other))
        // Encoding it again, as a reshard does, does not change it.
        expect(encodeBlock([recordAt(block, 0), other])).toEqual(block)
      }),
    )
  })
})

describe('a strand run', () => {
  const positionLists = fc
    .uniqueArray(fc.nat({ max: 1_023 }), { minLength: 1, maxLength: 50 })
    .map((positions) => positions.sort((left, right) => left - right))

  /** Pairs of first position and count, as in the store. */
  function pairsOf(positions: number[]): number[] {
    const pairs: number[] = []
    for (const position of positions) {
      const first = pairs.at(-2) ?? 0
      const count = pairs.at(-1) ?? 0
      if (count > 0 && first + count === position) pairs[pairs.length - 1] = count + 1
      else pairs.push(position, 1)
    }
    return pairs
  }

  it('is decoded from its encoding, and has the position of each of its records', () => {
    fc.assert(
      fc.property(positionLists, u48, u48, (positions, blockNo, strandBytes) => {
        const run = { blockNo, ms: 7, counter: 3, strandBytes, positionRanges: pairsOf(positions) }
        const read = decodeRun(encodeRun(run))
        expect(read).toEqual(run)
        expect(runLength(read)).toBe(positions.length)
        expect(positions.map((_position, offset) => positionInRun(read, offset))).toEqual(positions)
        expect(() => positionInRun(read, positions.length)).toThrow('The run has no record')
      }),
    )
  })

  it('is ordered by agent and then by seq', () => {
    const key = fc.record({ agentNo: fc.nat({ max: 2 ** 32 - 1 }), seq: u48 })
    fc.assert(
      fc.property(key, key, (left, right) => {
        const order = Buffer.compare(runKey(left.agentNo, left.seq), runKey(right.agentNo, right.seq))
        expect(order).toBe(Math.sign(left.agentNo - right.agentNo || left.seq - right.seq))
      }),
    )
  })
})

describe('a location', () => {
  it('is unpacked from its number, and numbers are in the order of locations', () => {
    const location = fc.record({
      blockNo: fc.nat({ max: 2 ** 37 - 1 }),
      position: fc.nat({ max: 65_535 }),
    })
    fc.assert(
      fc.property(location, location, (left, right) => {
        const packed = packLocation(left.blockNo, left.position)
        expect(unpackLocation(packed)).toEqual(left)
        expect(Math.sign(packed - packLocation(right.blockNo, right.position))).toBe(
          Math.sign(left.blockNo - right.blockNo || left.position - right.position),
        )
      }),
    )
  })
})
