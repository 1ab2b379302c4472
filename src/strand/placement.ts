import { auditAgent } from './organism-id.js'

/**
 * The placement of a name as an unsigned 32-bit number, independent of the number of shards. With it, a row
 * can be moved to a new number of shards without its name (docs/adr/0021-resharding.md). The audit strand of
 * the server is always in the first shard, with the API keys, so that a change of a key and its record are
 * one transaction (docs/adr/0033-lines-of-keys.md).
 */
export function placementOf(name: string): number {
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
 * The shard that owns an agent (docs/adr/0005-placement.md): FNV-1a over the code units of its name, then the
 * finalizer of MurmurHash3, because FNV alone distributes names that end in numbers poorly over few shards.
 */
export function shardOf(name: string, shards: number): number {
  return placementOf(name) % shards
}
