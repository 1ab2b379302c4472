import { LRUCache } from 'lru-cache'

/** What an entry takes beside its text, about: key, list and map. */
const ENTRY_BYTES = 256

/** A record that was asked for. */
export interface RecordAddress {
  agent: string
  /** 64 hex digits. */
  hash: string
}

/** What the cache has done, for metrics. */
export interface RecordCacheFigures {
  hits: number
  misses: number
  bytes: number
}

/**
 * Answers to reading a record by its hash, the ones used longest ago forgotten first. A record never changes, so what
 * must be forgotten is only whether it is deleted or erased: the shard tells of that with the commit that changes it, in
 * order with its answers, and before whoever asked for the change is answered.
 */
export class RecordCache {
  /** By hash; undefined where the cache is off. */
  readonly #answers: LRUCache<string, { agent: string; body: string }> | undefined
  #hits = 0
  #misses = 0

  /** `bytesMax`: of the texts and what keeps them; 0 is off. */
  constructor(bytesMax: number) {
    if (bytesMax === 0) return
    this.#answers = new LRUCache({
      maxSize: bytesMax,
      sizeCalculation: ({ body }) => body.length + ENTRY_BYTES,
    })
  }

  get figures(): RecordCacheFigures {
    return { hits: this.#hits, misses: this.#misses, bytes: this.#answers?.calculatedSize ?? 0 }
  }

  /** The answer that is known for a record. */
  find({ agent, hash }: RecordAddress): string | undefined {
    const known = this.#answers?.get(hash)
    if (known !== undefined && known.agent === agent) {
      this.#hits += 1
      return known.body
    }
    this.#misses += 1
    return undefined
  }

  /** Keeps the answer to reading a record. */
  keep({ agent, hash }: RecordAddress, body: string): void {
    // A copy: the text is a slice of its whole frame, and would keep all of that in memory.
    this.#answers?.set(hash, { agent, body: Buffer.from(body).toString() })
  }

  /** Forgets records that were deleted, restored or erased. */
  forget(hashes: readonly string[]): void {
    for (const hash of hashes) this.#answers?.delete(hash)
  }

  /** Forgets all: what a shard committed last before it died may never have been told. */
  clear(): void {
    this.#answers?.clear()
  }
}
