import { assert } from '../../base/assert.js'
import { LocalBuckets, type BucketRule, type RateBuckets } from './rate-buckets.js'

/** A rate limit per client address (docs/NETWORK.md). */
export interface RateLimitSettings {
  /** Tokens per second, and the tokens of a new address; 0 switches the limit off. */
  ratePerSec: number
  /** The most tokens in a bucket; 0 switches the limit off. */
  burst: number
  addressesMax: number
}

/** More than the rounding error of sums of Unix milliseconds in doubles. */
const ROUNDING_MS = 0.01

export interface CountedRequest {
  /** Milliseconds until the next token; 0 when admitted. */
  waitMs: number
  remaining: number
}

/** Creates the table of buckets. */
export type MakeBuckets = (rule: BucketRule) => RateBuckets

/**
 * One token bucket for each client address.
 *
 * The table is bounded, and a client gains nothing if its bucket is evicted. A new address starts with
 * `ratePerSec` tokens, so a bucket may be evicted only when it holds at least as many, which is at most a
 * second after its last request. An attacker that cycles through more than `addressesMax` addresses within a
 * second evicts none: new addresses then share one overflow bucket until a second has passed.
 */
export class RateLimiter {
  readonly enabled: boolean
  readonly #intervalMs: number
  readonly #capacityMs: number
  /** Keeps rounding errors from refusing an available token or extending a wait by a millisecond. */
  readonly #toleranceMs: number
  readonly #buckets: RateBuckets

  /** @param makeBuckets creates the table of buckets; by default one that is not shared */
  constructor({ ratePerSec, burst, addressesMax }: RateLimitSettings, makeBuckets?: MakeBuckets) {
    assert(ratePerSec >= 0 && burst >= 0, 'rate and burst are not negative')
    this.enabled = ratePerSec > 0 && burst > 0
    this.#intervalMs = 1000 / ratePerSec
    this.#capacityMs = burst * this.#intervalMs
    this.#toleranceMs = Math.min(ROUNDING_MS, this.#intervalMs / 100)
    const newBucketDeficitMs = (burst - Math.min(ratePerSec, burst)) * this.#intervalMs
    const rule = {
      newBucketDeficitMs,
      evictableDeficitMs: newBucketDeficitMs + this.#toleranceMs,
    }
    this.#buckets = makeBuckets?.(rule) ?? new LocalBuckets(rule, addressesMax)
  }

  /**
   * Takes one token from the bucket of `address` (a `limiterKey`).
   * @returns milliseconds until the next token; 0 when admitted
   */
  take(address: string, nowMs: number): number {
    return this.enabled ? this.count(address, nowMs).waitMs : 0
  }

  /** As `take`, and returns the tokens left. Must be called only if the limit is enabled. */
  count(address: string, nowMs: number): CountedRequest {
    let counted: CountedRequest = { waitMs: 0, remaining: 0 }
    this.#buckets.change(address, nowMs, (found) => {
      // A bucket is never worse than empty, so that no client waits longer after the clock was set back.
      const fullAtMs = Math.min(found, nowMs + this.#capacityMs)
      const nextFullAtMs = Math.max(fullAtMs, nowMs) + this.#intervalMs
      const waitMs = nextFullAtMs - nowMs - this.#capacityMs
      if (waitMs > this.#toleranceMs) {
        counted = { waitMs: Math.ceil(waitMs - this.#toleranceMs / 2), remaining: 0 }
        return fullAtMs
      }
      counted = { waitMs: 0, remaining: this.#tokens(nextFullAtMs - nowMs) }
      return nextFullAtMs
    })
    return counted
  }

  /** Whole tokens that `address` has left, without taking one; Infinity if the limit is off. */
  remaining(address: string, nowMs: number): number {
    return this.enabled ? this.#tokens(this.#buckets.peek(address, nowMs) - nowMs) : Infinity
  }

  /** Whole tokens in a bucket that will be full in `deficitMs`. */
  #tokens(deficitMs: number): number {
    const tokens = (this.#capacityMs - Math.max(0, deficitMs) + this.#toleranceMs) / this.#intervalMs
    return Math.max(0, Math.floor(tokens))
  }
}

/**
 * The member of `RateLimit-Policy` for one limit, such as `"global";q=200;w=2`: the bucket size, and the
 * whole seconds in which it fills (draft-ietf-httpapi-ratelimit-headers). `name` is ASCII without quotes.
 */
export function rateLimitPolicyField(
  name: string,
  settings: Pick<RateLimitSettings, 'ratePerSec' | 'burst'>,
): string {
  return `"${name}";q=${settings.burst};w=${Math.ceil(settings.burst / settings.ratePerSec)}`
}

/**
 * The member of `RateLimit` for one limit, such as `"global";r=0;t=1`: tokens left and, if the request was
 * refused, seconds until the next token (draft-ietf-httpapi-ratelimit-headers).
 */
export function rateLimitField(name: string, remaining: number, waitMs: number): string {
  const wait = waitMs > 0 ? `;t=${retryAfterSecs(waitMs)}` : ''
  return `"${name}";r=${remaining}${wait}`
}

/** Whole seconds for `Retry-After`, at least 1 (RFC 9110, 10.2.3). @param waitMs as returned by `take` */
export function retryAfterSecs(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1000))
}
