import type { LRUCache } from 'lru-cache'
import { assert } from '../../base/assert.js'
import { boundedCache } from '../../base/bounded-cache.js'
import { SharedTable, type SharedTableMemory } from './shared-table.js'

/** How long a bucket needs to be full, and when it may be forgotten. */
export interface BucketRule {
  /** How far from full a new bucket is, milliseconds of refilling. */
  newBucketLacksMs: number
  /** A bucket that lacks no more than this is as good as a new one. */
  droppableLacksMs: number
}

/**
 * The buckets of addresses, each one number: when it will be full again, in milliseconds of the caller's clock.
 *
 * The table is bounded, and no address gains by being forgotten, whoever causes that: a bucket is dropped only when it
 * is as good as a new one. New addresses that find no room share one overflow bucket.
 */
export interface RateBuckets {
  /** Replaces when the bucket of an address is full. */
  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void
  /** When the bucket of an address is full, or that which it would get. */
  peek(address: string, nowMs: number): number
}

/** The buckets of a process with one front: the least recently seen are dropped first. */
export class OwnBuckets implements RateBuckets {
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
    const bucket = this.#buckets.get(address) ?? this.#newBucket(address, nowMs)
    bucket.fullAtMs = change(bucket.fullAtMs)
  }

  peek(address: string, nowMs: number): number {
    const bucket = this.#buckets.peek(address) ?? (this.#hasRoom(nowMs) ? undefined : this.#overflow)
    return bucket === undefined ? nowMs + this.#rule.newBucketLacksMs : bucket.fullAtMs
  }

  #newBucket(address: string, nowMs: number): { fullAtMs: number } {
    if (!this.#hasRoom(nowMs)) return this.#overflow
    const bucket = { fullAtMs: nowMs + this.#rule.newBucketLacksMs }
    this.#buckets.set(address, bucket)
    return bucket
  }

  /** Whether the least recently seen bucket can be forgotten, or none need be. */
  #hasRoom(nowMs: number): boolean {
    if (this.#buckets.size < this.#addressesMax) return true
    const oldestAddress = this.#buckets.rkeys().next().value
    const oldest = oldestAddress === undefined ? undefined : this.#buckets.peek(oldestAddress)
    assert(oldest !== undefined, 'a full table has an oldest bucket')
    return oldest.fullAtMs - nowMs <= this.#rule.droppableLacksMs
  }
}

/** How many buckets are looked at for one that can be forgotten. */
const LOOKS = 64

/** The buckets that all fronts of a process count in (docs/adr/0045-fronts.md). */
export class SharedBuckets implements RateBuckets {
  readonly #rule: BucketRule
  readonly #table: SharedTable

  constructor(rule: BucketRule, memory: SharedTableMemory) {
    this.#rule = rule
    this.#table = new SharedTable(memory)
  }

  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void {
    const table = this.#table
    table.at(address, (found) => {
      const place = found.isFull ? found.makeRoom((fullAtMs) => this.#mayDrop(fullAtMs, nowMs), LOOKS) : found
      if (place === false) table.spare = change(table.spare)
      else {
        const fullAtMs = place.value ?? nowMs + this.#rule.newBucketLacksMs
        place.set(change(fullAtMs))
      }
    })
  }

  peek(address: string, nowMs: number): number {
    const table = this.#table
    return table.at(address, ({ value, isFull, makeRoom }) => {
      if (value !== undefined) return value
      const isNew = !isFull || makeRoom((fullAtMs) => this.#mayDrop(fullAtMs, nowMs), LOOKS) !== false
      return isNew ? nowMs + this.#rule.newBucketLacksMs : table.spare
    })
  }

  #mayDrop(fullAtMs: number, nowMs: number): boolean {
    return fullAtMs - nowMs <= this.#rule.droppableLacksMs
  }
}
