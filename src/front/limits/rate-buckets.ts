import type { LRUCache } from 'lru-cache'
import { assert } from '../../base/assert.js'
import { boundedCache } from '../../base/bounded-cache.js'
import { SharedTable, type SharedTableMemory } from './shared-table.js'

/** How new buckets start, and which buckets may be evicted. */
export interface BucketRule {
  /** Deficit of a new bucket: milliseconds of refilling until it is full. */
  newBucketDeficitMs: number
  /** A bucket whose deficit is at most this may be evicted: a new one is not fuller. */
  evictableDeficitMs: number
}

/**
 * The buckets of addresses. Each is one number: when it will be full again, in milliseconds of the caller's
 * clock.
 *
 * The table is bounded, and a client gains nothing if its bucket is evicted: only buckets that are at least
 * as full as a new one are. If none can be evicted, new addresses share one overflow bucket.
 */
export interface RateBuckets {
  /** Updates the time at which the bucket of an address is full. */
  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void
  /** When the bucket of an address is full; for an unknown address, that of the bucket it would get. */
  peek(address: string, nowMs: number): number
}

/** The buckets of a process with one front; the least recently used are evicted first. */
export class LocalBuckets implements RateBuckets {
  readonly #rule: BucketRule
  readonly #addressesMax: number
  readonly #buckets: LRUCache<string, { fullAtMs: number }>
  readonly #overflow = { fullAtMs: 0 }

  constructor(rule: BucketRule, addressesMax: number) {
    assert(addressesMax > 0, 'the limiter remembers at least one address')
    this.#rule = rule
    this.#addressesMax = addressesMax
    this.#buckets = boundedCache(addressesMax)
  }

  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void {
    const bucket = this.#buckets.get(address) ?? this.#addBucket(address, nowMs)
    bucket.fullAtMs = change(bucket.fullAtMs)
  }

  peek(address: string, nowMs: number): number {
    const bucket = this.#buckets.peek(address) ?? (this.#hasCapacity(nowMs) ? undefined : this.#overflow)
    return bucket === undefined ? nowMs + this.#rule.newBucketDeficitMs : bucket.fullAtMs
  }

  #addBucket(address: string, nowMs: number): { fullAtMs: number } {
    if (!this.#hasCapacity(nowMs)) return this.#overflow
    const bucket = { fullAtMs: nowMs + this.#rule.newBucketDeficitMs }
    this.#buckets.set(address, bucket)
    return bucket
  }

  /** Whether the table has capacity, or its least recently used bucket can be evicted. */
  #hasCapacity(nowMs: number): boolean {
    if (this.#buckets.size < this.#addressesMax) return true
    const oldestAddress = this.#buckets.rkeys().next().value
    const oldest = oldestAddress === undefined ? undefined : this.#buckets.peek(oldestAddress)
    assert(oldest !== undefined, 'a full table has an oldest bucket')
    return oldest.fullAtMs - nowMs <= this.#rule.evictableDeficitMs
  }
}

/** How many buckets are examined to find one that can be evicted. */
const EVICTION_PROBES = 64

/** The buckets that all fronts of a process share (docs/adr/0045-fronts.md). */
export class SharedBuckets implements RateBuckets {
  readonly #rule: BucketRule
  readonly #table: SharedTable

  constructor(rule: BucketRule, memory: SharedTableMemory) {
    this.#rule = rule
    this.#table = new SharedTable(memory)
  }

  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void {
    const table = this.#table
    table.withSlot(address, (found) => {
      const slot = found.isFull
        ? found.evictOne((fullAtMs) => this.#mayEvict(fullAtMs, nowMs), EVICTION_PROBES)
        : found
      if (slot === false) table.spare = change(table.spare)
      else {
        const fullAtMs = slot.value ?? nowMs + this.#rule.newBucketDeficitMs
        slot.set(change(fullAtMs))
      }
    })
  }

  peek(address: string, nowMs: number): number {
    const table = this.#table
    return table.withSlot(address, ({ value, isFull, evictOne }) => {
      if (value !== undefined) return value
      const isNew =
        !isFull || evictOne((fullAtMs) => this.#mayEvict(fullAtMs, nowMs), EVICTION_PROBES) !== false
      return isNew ? nowMs + this.#rule.newBucketDeficitMs : table.spare
    })
  }

  #mayEvict(fullAtMs: number, nowMs: number): boolean {
    return fullAtMs - nowMs <= this.#rule.evictableDeficitMs
  }
}
