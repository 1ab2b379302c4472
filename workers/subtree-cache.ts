import { LRUCache } from 'lru-cache'
import { limits } from '../src/base/limits.js'

/** Roots of complete subtrees, which never change in an append-only tree; the latest used are kept. */
export class SubtreeCache {
  readonly #roots = new LRUCache<string, Uint8Array>({ max: limits.subtreesKeptMax })

  get(key: string): Uint8Array | undefined {
    return this.#roots.get(key)
  }

  set(key: string, root: Uint8Array): void {
    this.#roots.set(key, root)
  }
}
