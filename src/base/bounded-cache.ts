import { LRUCache } from 'lru-cache'

/**
 * A least-recently-used cache of at most `entriesMax` entries. Its memory grows with its entries; an
 * `LRUCache` with `max` allocates arrays of that length immediately.
 */
export function boundedCache<K extends {}, V extends {}>(entriesMax: number): LRUCache<K, V> {
  return new LRUCache<K, V>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}
