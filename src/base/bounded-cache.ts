import { LRUCache } from 'lru-cache'

/**
 * A cache that forgets the least recently used entry when it is full. It takes memory for the entries that it has, not
 * for those that it may have: an `LRUCache` with `max` allocates arrays of that length at once.
 * @param entriesMax the most entries
 */
export function boundedCache<K extends {}, V extends {}>(entriesMax: number): LRUCache<K, V> {
  return new LRUCache<K, V>({ maxSize: entriesMax, sizeCalculation: () => 1 })
}
