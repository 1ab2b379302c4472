import { boundedCache } from '../../src/base/bounded-cache.js'
import { limits } from '../../src/base/limits/limits.js'

/** Roots of complete subtrees, which never change in an append-only tree; the ones used last are kept. */
export class SubtreeCache {
  readonly #roots = boundedCache<string, Uint8Array>(limits.subtreesKeptMax)

  get(key: string): Uint8Array | undefined {
    return this.#roots.get(key)
  }

  set(key: string, root: Uint8Array): void {
    this.#roots.set(key, root)
  }
}
