import { assert } from '../../base/assert.js'
import { OwnBuckets, type BucketRule, type RateBuckets } from './rate-buckets.js'

/** A limit of requests for each client address (docs/OPERATIONS.md, Rate limits). */
export interface RateLimitSettings {
  /** Tokens a second, and those that a new address starts with; 0 switches the limit off. */
  ratePerSec: number
  /** The most tokens that a bucket holds; 0 switches the limit off. */
  burst: number
  /** How many addresses are remembered at once. */
  addressesMax: number
}

/** More than the rounding error of sums of Unix milliseconds in doubles. */
const ROUNDING_MS = 0.01

/** The result of counting a request. */
export interface CountedRequest {
  /** Milliseconds until the next token; 0 when admitted. */
  waitMs: number
  /** Whole tokens that are left. */
  remaining: number
}

/** Makes the table of buckets, by the rule of the limit. */
export type MakeBuckets = (rule: BucketRule) => RateBuckets

/**
 * One token bucket for each client address.
 *
 * The table is bounded, and no address gains by being forgotten, whoever causes that: a new address starts with
 * `ratePerSec` tokens, so a bucket may be dropped only when it holds at least as many, which is at most a second after
 * its last request. If somebody cycles through addresses to push others out, every bucket is still needed, and new
 * addresses share one overflow bucket until a second has passed. That takes more than `addressesMax` addresses within
 * one second.
 */
export class RateLimiter {
  /** Whether the limit is on. */
  readonly enabled: boolean
  readonly #intervalMs: number
  readonly #capacityMs: number
  /** Keeps rounding from refusing a token that is there or making a wait a millisecond longer. */
  readonly #toleranceMs: number
  readonly #buckets: RateBuckets

  /** @param makeBuckets makes the table; one of its own when absent */
  constructor({ ratePerSec, burst, addressesMax }: RateLimitSettings, makeBuckets?: MakeBuckets) {
    assert(ratePerSec >= 0 && burst >= 0, 'rate and burst are not negative')
    this.enabled = ratePerSec > 0 && burst > 0
    this.#intervalMs = 1000 / ratePerSec
    this.#capacityMs = burst * this.#intervalMs
    this.#toleranceMs = Math.min(ROUNDING_MS, this.#intervalMs / 100)
    const newBucketLacksMs = (burst - Math.min(ratePerSec, burst)) * this.#intervalMs
    const rule = { newBucketLacksMs, droppableLacksMs: newBucketLacksMs + this.#toleranceMs }
    this.#buckets = makeBuckets?.(rule) ?? new OwnBuckets(rule, addressesMax)
  }

  /**
   * Takes one token from the bucket of `address` (a `limiterKey`).
   * @returns milliseconds until the next token; 0 when admitted
   */
  take(address: string, nowMs: number): number {
    return this.enabled ? this.count(address, nowMs).waitMs : 0
  }

  /** The same, and what is left then; only if the limit is on. */
  count(address: string, nowMs: number): CountedRequest {
    let counted: CountedRequest = { waitMs: 0, remaining: 0 }
    this.#buckets.change(address, nowMs, (found) => {
      // No bucket is worse than empty: after the clock was set back, nobody waits for longer than that.
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

  /** Whole tokens that `address` has left; Infinity when the limit is off. Takes none. */
  remaining(address: string, nowMs: number): number {
    return this.enabled ? this.#tokens(this.#buckets.peek(address, nowMs) - nowMs) : Infinity
  }

  /** Whole tokens in a bucket that will be full in `lacksMs`. */
  #tokens(lacksMs: number): number {
    const tokens = (this.#capacityMs - Math.max(0, lacksMs) + this.#toleranceMs) / this.#intervalMs
    return Math.max(0, Math.floor(tokens))
  }
}

/**
 * The member of `RateLimit-Policy` for one limit, such as `"global";q=200;w=2`: a full bucket and the whole
 * seconds in which it fills (draft-ietf-httpapi-ratelimit-headers). `name` is plain ASCII without quotes.
 */
export function rateLimitPolicyField(
  name: string,
  settings: Pick<RateLimitSettings, 'ratePerSec' | 'burst'>,
): string {
  return `"${name}";q=${settings.burst};w=${Math.ceil(settings.burst / settings.ratePerSec)}`
}

/**
 * The member of `RateLimit` for one limit, such as `"global";r=0;t=1`: tokens left and, for a request that was
 * not admitted, seconds until there is one (draft-ietf-httpapi-ratelimit-headers).
 */
export function rateLimitField(name: string, remaining: number, waitMs: number): string {
  const wait = waitMs > 0 ? `;t=${retryAfterSecs(waitMs)}` : ''
  return `"${name}";r=${remaining}${wait}`
}

/** Whole seconds for `Retry-After` from what `take` answered, at least 1 (RFC 9110, 10.2.3). */
export function retryAfterSecs(waitMs: number): number {
  return Math.max(1, Math.ceil(waitMs / 1000))
}
