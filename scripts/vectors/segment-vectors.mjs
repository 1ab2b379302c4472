/** Frozen segments of a log file (docs/adr/0041-one-log.md). */
import { encodeChanges } from '../../dist/workers/store/log/row-change.js'
import { contentOf, encodeSegment } from '../../dist/workers/store/log/segment.js'
import { tableIds } from '../../dist/src/store-files/store-tables.js'
import { hex } from './strand-maker.mjs'

const bytes = (length, first) => Buffer.from(Array.from({ length }, (_, at) => (first + at) % 256))

const groups = [
  // A row that is put, and one that is removed.
  [
    { table: tableIds.agents, key: bytes(4, 1), value: bytes(20, 10) },
    { table: tableIds.expiries, key: bytes(9, 50), value: undefined },
  ],
  // An empty value is not a removed row.
  [{ table: tableIds.auth, key: bytes(3, 7), value: Buffer.alloc(0) }],
  // Content that fills its sector, and one more byte.
  [{ table: tableIds.blocks, key: bytes(6, 0), value: bytes(512 - 96 - 7 - 6, 3) }],
  [{ table: tableIds.blocks, key: bytes(6, 1), value: bytes(512 - 96 - 7 - 6 + 1, 4) }],
  // A key and a value of several sectors.
  [{ table: tableIds.mails, key: bytes(300, 9), value: bytes(3_000, 200) }],
  [],
]

/** Consecutive segments; the last one points to another file. */
export function segmentVectors() {
  const first = { number: 281_474_976_710_650 - groups.length, hash: bytes(32, 100) }
  let before = first
  const segments = groups.map((changes, at) => {
    const content = encodeChanges(changes)
    const { place, bytes: encoded } = encodeSegment(before, {
      kind: 'group',
      content,
      durable: Math.max(first.number, before.number - (at % 3)),
    })
    before = place
    return {
      kind: 'group',
      number: place.number,
      durable: Math.max(first.number, place.number - 1 - (at % 3)),
      hash: hex(place.hash),
      changes: changes.map(({ table, key, value }) => ({
        table,
        key: hex(key),
        value: value === undefined ? null : hex(value),
      })),
      bytes: hex(encoded),
    }
  })
  const content = contentOf(Buffer.from([0, 0, 1, 2]))
  const { place, bytes: encoded } = encodeSegment(before, { kind: 'next', content, durable: before.number })
  return {
    tables: Object.fromEntries(Object.entries(tableIds).filter(([, id]) => typeof id === 'number')),
    before: { number: first.number, hash: hex(first.hash) },
    segments: [
      ...segments,
      {
        kind: 'next',
        number: place.number,
        durable: before.number,
        hash: hex(place.hash),
        file: 258,
        bytes: hex(encoded),
      },
    ],
  }
}
