import { describe, expect, it } from 'vitest'
import vectors from '../../../vectors/cluster-segments.json' with { type: 'json' }
import {
  decodeCheckpointHead,
  decodeCheckpointPart,
  encodeCheckpointHead,
  encodeCheckpointPart,
} from '../../../../workers/store/replica/cluster-checkpoint.js'
import {
  type ClusterHeader,
  decodeClusterSegment,
  encodeClusterSegment,
} from '../../../../workers/store/replica/cluster-segment.js'
import { RecordCheck } from '../../../../workers/store/log/record-check.js'
import { decodeChanges, type RowChange } from '../../../../workers/store/log/row-change.js'
import { eraseInRows } from '../../../../workers/store/log/segment-blocks.js'
import { tableIds } from '../../../../src/store-files/store-tables.js'
import { encodeBlock, recordAt } from '../../../../workers/store/tables/record-codec.js'

const bytes = (text: string) => Buffer.from(text, 'hex')
const secret = {
  cluster: vectors.cluster,
  masterSeed: bytes(vectors.masterSeed),
  random: (count: number) => Buffer.alloc(count, 9),
}
const changesOf = (text: string): RowChange[] => [...decodeChanges(bytes(text))]

interface Frozen {
  about: object
  changes: string
  header: string
  hash: string
  blocks: string
  state: string | null
}
const segments: readonly Frozen[] = vectors.segments
const aboutOf = ({ about }: Frozen) => {
  const { prev, ...more } = about as Omit<ClusterHeader, 'prev'> & { prev: string }
  return { ...more, prev: bytes(prev) }
}
const rowOf = (frozen: Frozen, blocks = bytes(frozen.blocks)) => ({
  segment: aboutOf(frozen).segment,
  part: 0,
  hash: bytes(frozen.hash),
  header: frozen.header,
  blocks,
  state: frozen.state === null ? null : bytes(frozen.state),
})
const read = (frozen: Frozen) =>
  decodeClusterSegment([rowOf(frozen)], { ...secret, check: new RecordCheck(() => undefined) })

describe('the format of a cluster’s segments', () => {
  it.each(segments)('is frozen: $header', (frozen) => {
    const { header, hash, parts } = encodeClusterSegment(aboutOf(frozen), changesOf(frozen.changes), secret)
    const [part] = parts.map(({ blocks, state }) => [blocks, state])
    expect([header, hash.toString('hex'), part]).toEqual([
      frozen.header,
      frozen.hash,
      [bytes(frozen.blocks), rowOf(frozen).state],
    ])
    const found = read(frozen)
    expect(found.about).toEqual(aboutOf(frozen))
    expect(found.changes).toHaveLength(changesOf(frozen.changes).length)
  })

  it('is frozen for a segment with an erased record', () => {
    const { segment, change, blocks } = vectors.erased
    const frozen = segments[segment]
    const [erased] = changesOf(change)
    if (frozen === undefined || erased === undefined)
      throw new Error('Expected the segment of an erased record')
    const { positions, rewrites } = eraseInRows([rowOf(frozen)], erased)
    expect(positions).toEqual([0])
    expect(rewrites.map((row) => Buffer.from(row.blocks).toString('hex'))).toEqual([blocks])
    const check = new RecordCheck(() => undefined)
    const row = rowOf(frozen, bytes(blocks))
    expect(decodeClusterSegment([row], { ...secret, check }).changes[0]?.value).toEqual(erased.value)
    expect(() => check.finish()).toThrow('lacks the body of a record')
  })

  it('detects each flipped bit in the plaintext', () => {
    for (const frozen of segments) {
      const whole = bytes(frozen.blocks)
      const isAccepted = () => {
        try {
          return decodeClusterSegment([rowOf(frozen, whole)], { ...secret, what: 'blocks' }) !== undefined
        } catch {
          return false
        }
      }
      for (let bit = 0; bit < whole.length * 8; bit++) {
        const at = bit >> 3
        whole[at] = (whole[at] ?? 0) ^ (1 << (bit & 7))
        if (isAccepted()) expect.fail(`bit ${bit} of segment ${aboutOf(frozen).segment}`)
        whole[at] = (whole[at] ?? 0) ^ (1 << (bit & 7))
      }
      expect(isAccepted()).toBe(true)
    }
  })

  it('refuses a record that does not match its hash, even from a writer with the master seed', () => {
    const [, frozen] = segments
    if (frozen === undefined) throw new Error('Expected a segment with records')
    const changes = changesOf(frozen.changes).map((change) => {
      if (change.table !== tableIds.blocks || change.value === undefined) return change
      const record = recordAt(change.value, 0)
      return { ...change, value: encodeBlock([{ ...record, body: Buffer.from('{"zone":"core"}') }]) }
    })
    const { header, hash, parts } = encodeClusterSegment(aboutOf(frozen), changes, secret)
    const rows = parts.map((part) => ({ segment: 1, part: 0, hash, header, ...part }))
    const check = new RecordCheck(() => undefined)
    expect(() => decodeClusterSegment(rows, { ...secret, check })).toThrow('the hash of its header')
  })

  it('is frozen for checkpoints, which are bound to their cluster', () => {
    const { head, rows, part, bytes: first } = vectors.checkpoint
    const about = { ...head, hash: bytes(head.hash) }
    const id = { ...head, part: 1 }
    expect(encodeCheckpointPart(id, changesOf(rows), secret).toString('hex')).toBe(part)
    expect(decodeCheckpointPart(id, bytes(part), secret)).toEqual(changesOf(rows))
    expect(encodeCheckpointHead(about, secret).toString('hex')).toBe(first)
    expect(decodeCheckpointHead(bytes(first), secret)).toEqual(about)
    const elsewhere = { ...secret, cluster: '08'.repeat(16) }
    expect(() => decodeCheckpointHead(bytes(first), elsewhere)).toThrow('of another cluster')
    expect(() => decodeCheckpointPart(id, bytes(part), elsewhere)).toThrow()
  })
})
