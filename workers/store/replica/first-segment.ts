import { importedBlocksFrom } from '../tables/tables.js'
import { type ClusterSecret, encodeClusterSegment, noWriter } from './cluster-segment.js'

/** Segment 0 of a shard's log in a cluster, as it is stored. */
export function firstSegment(shard: number, secret: ClusterSecret) {
  const next = { blocks: 0, imported: importedBlocksFrom }
  const prev = Buffer.alloc(32)
  const about = {
    shard,
    segment: 0,
    kind: 'base',
    writer: noWriter,
    lastGroup: 0,
    groups: 0,
    next,
    prev,
  } as const
  const { header, hash, parts } = encodeClusterSegment(about, [], secret)
  const stored = parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
  return { shard, number: 0, hash, header, parts: stored }
}
