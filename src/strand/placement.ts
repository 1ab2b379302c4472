import { auditAgent } from './organism-id.js'

/**
 * Where a name is placed, independent of the number of shards: an unsigned number of 32 bits. A row that contains it
 * can be moved to another number of shards without knowing the name (docs/adr/0021-resharding.md). The server's own
 * audit strand is always in the first shard, with the API keys: a change of a key and its record are one transaction
 * (docs/adr/0033-lines-of-keys.md).
 */
export function placeOf(name: string): number {
  if (name === auditAgent) return 0
  let hash = 0x811c9dc5
  for (let index = 0; index < name.length; index++) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  hash ^= hash >>> 16
  return hash >>> 0
}

/**
 * The shard that owns an agent: the one place that decides it (docs/adr/0005-placement.md). FNV-1a over the name's
 * code units, then murmur's finishing mix, because FNV alone spreads names that end in numbers badly over few shards.
 * It never changes for a data directory: `reshard` moves strands.
 */
export function shardOf(name: string, shards: number): number {
  return placeOf(name) % shards
}
