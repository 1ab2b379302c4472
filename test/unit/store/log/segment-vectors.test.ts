import { describe, expect, it } from 'vitest'
import vectors from '../../../vectors/segments.json' with { type: 'json' }
import { decodeChanges, encodeChanges } from '../../../../workers/store/log/row-change.js'
import {
  contentOf as asContent,
  decodeSegment,
  encodeSegment,
  type SegmentContent,
} from '../../../../workers/store/log/segment.js'
import { tableIds } from '../../../../src/store-files/store-tables.js'

const { before: first, segments, tables } = vectors
const bytesOf = (text: string) => Buffer.from(text, 'hex')

interface Frozen {
  kind: string
  number: number
  durable: number
  hash: string
  bytes: string
  changes?: { table: number; key: string; value: string | null }[]
  file?: number
}

const cases: [before: { number: number; hash: string }, segment: Frozen][] = segments.map((segment, at) => [
  segments[at - 1] ?? first,
  segment,
])

function contentOf({ changes, file }: Frozen): SegmentContent {
  if (changes === undefined) {
    const name = Buffer.alloc(4)
    name.writeUInt32BE(file ?? 0)
    return asContent(name)
  }
  return encodeChanges(
    changes.map(({ table, key, value }) => ({
      table,
      key: bytesOf(key),
      value: value === null ? undefined : bytesOf(value),
    })),
  )
}

function written(content: SegmentContent): Buffer {
  const bytes = Buffer.alloc(content.bytes)
  content.write(bytes)
  return bytes
}

describe('the format of segments', () => {
  it.each(cases)('is frozen for the segment after %o', (before, frozen) => {
    const kind = frozen.kind === 'next' ? 'next' : 'group'
    const place = { number: before.number, hash: bytesOf(before.hash) }
    const content = contentOf(frozen)
    const encoded = encodeSegment(place, { kind, content, durable: frozen.durable })
    expect(encoded.bytes.toString('hex')).toBe(frozen.bytes)
    expect(encoded.place.hash.toString('hex')).toBe(frozen.hash)
    const read = decodeSegment(bytesOf(frozen.bytes), 0)
    expect(read && { ...read, hash: read.hash.toString('hex'), prev: read.prev.toString('hex') }).toEqual({
      kind,
      number: frozen.number,
      durable: frozen.durable,
      hash: frozen.hash,
      prev: before.hash,
      content: written(content),
      bytes: frozen.bytes.length / 2,
    })
    if (frozen.changes === undefined) return
    const changes = Array.from(decodeChanges(read?.content ?? Buffer.alloc(0)), ({ table, key, value }) => ({
      table,
      key: key.toString('hex'),
      value: value?.toString('hex') ?? null,
    }))
    expect(changes).toEqual(frozen.changes)
  })

  it('has one number for each table, which never changes', () => {
    expect(tableIds).toMatchObject(tables)
    const numbers = Object.values(tableIds).filter((id) => typeof id === 'number')
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  it('detects each flipped bit before its padding', () => {
    for (const [, frozen] of cases) {
      const whole = bytesOf(frozen.bytes)
      const end = 96 + whole.readUInt32BE(40)
      for (let bit = 0; bit < end * 8; bit++) {
        const at = bit >> 3
        whole[at] = (whole[at] ?? 0) ^ (1 << (bit & 7))
        const read = decodeSegment(whole, 0)
        whole[at] = (whole[at] ?? 0) ^ (1 << (bit & 7))
        if (read !== undefined) expect.fail(`bit ${bit} of segment ${frozen.number}`)
      }
    }
  })
})
