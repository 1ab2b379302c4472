import type { LRUCache } from 'lru-cache'
import { assert } from '../../base/assert.js'
import { boundedCache } from '../../base/bounded-cache.js'
import type { Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import type { RequestHeaders } from '../routes/route.js'
import type { HeaderFields } from '../http/answer-head.js'
import type { HttpResponse } from '../engine/http-listener.js'
import { addressText, clientAddress, isWithinAny, limiterKey, type AddressRanges } from './client-address.js'
import { SharedTable, type SharedTableMemory } from './shared-table.js'

export interface NamedLimit {
  name: 'global' | 'auth'
  limiter: RateLimiter
  limit: { ratePerSec: number; burst: number }
}

/** The result of checking a request against the limits. */
export interface RateVerdict {
  /** 429 rate_limited; absent if admitted. */
  refusal?: Refusal
  /** `RateLimit` and `RateLimit-Policy` of the answer; empty if no limit applies. */
  headers: HeaderFields
}

const notRated: RateVerdict = { headers: [] }

/** The limits, and the addresses that they treat specially. */
export interface RateSettings {
  global: NamedLimit
  auth: NamedLimit
  exempt: AddressRanges
  /** Proxies whose X-Forwarded-For is trusted. */
  trusted: AddressRanges
}

/** A limit with its constant policy header. */
interface LimitWithPolicy extends NamedLimit {
  policy: readonly ['RateLimit-Policy', string]
}

/**
 * The rate limits per address: a global one on every route and a second one on auth routes. Exempt addresses
 * are exempt from the global limit only: the auth limit slows down password guessing, which a machine in the
 * local network can do as well (docs/NETWORK.md).
 */
export class RateLimits {
  readonly #global: LimitWithPolicy
  readonly #auth: LimitWithPolicy
  readonly #both: readonly ['RateLimit-Policy', string]
  readonly #exempt: AddressRanges
  readonly #trusted: AddressRanges
  readonly #clock: Clock

  constructor({ global, auth, exempt, trusted }: RateSettings, clock: Clock) {
    this.#global = withPolicy(global)
    this.#auth = withPolicy(auth)
    this.#both = ['RateLimit-Policy', `${this.#global.policy[1]}, ${this.#auth.policy[1]}`]
    this.#exempt = exempt
    this.#trusted = trusted
    this.#clock = clock
  }

  limit(response: HttpResponse, headers: RequestHeaders, isAuth: boolean): RateVerdict {
    const enabled = this.#global.limiter.enabled || (isAuth && this.#auth.limiter.enabled)
    return enabled ? this.count(this.#address(response, headers), isAuth) : notRated
  }

  /** The caller's address as text, for audit records. */
  addressOf(response: HttpResponse, headers: RequestHeaders): string {
    return addressText(this.#address(response, headers))
  }

  #address(response: HttpResponse, { forwardedFor }: RequestHeaders): Uint8Array {
    const peer = new Uint8Array(response.getRemoteAddress())
    return clientAddress({ peer, forwardedFor, trusted: this.#trusted })
  }

  /** Takes a token from each bucket that applies. @param address as returned by `clientAddress` */
  count(address: Uint8Array, isAuth: boolean): RateVerdict {
    const key = limiterKey(address)
    const nowMs = this.#clock()
    const isExempt = this.#exempt.length > 0 && isWithinAny(address, this.#exempt)
    const global = isExempt ? undefined : counted(this.#global, key, nowMs)
    if (global !== undefined && global.waitMs > 0) return limited(this.#global, global)
    const auth = isAuth ? counted(this.#auth, key, nowMs) : undefined
    if (auth !== undefined && auth.waitMs > 0) return limited(this.#auth, auth)
    if (auth === undefined) return global === undefined ? notRated : admitted(this.#global, global)
    if (global === undefined) return admitted(this.#auth, auth)
    const fields = `${field(this.#global, global)}, ${field(this.#auth, auth)}`
    return { headers: [['RateLimit', fields], this.#both] }
  }
}

function withPolicy(named: NamedLimit): LimitWithPolicy {
  return { ...named, policy: ['RateLimit-Policy', rateLimitPolicyField(named.name, named.limit)] }
}

function counted({ limiter }: LimitWithPolicy, key: string, nowMs: number): CountedRequest | undefined {
  return limiter.enabled ? limiter.count(key, nowMs) : undefined
}

function field({ name }: LimitWithPolicy, { remaining, waitMs }: CountedRequest): string {
  return rateLimitField(name, remaining, waitMs)
}

function admitted(limit: LimitWithPolicy, count: CountedRequest): RateVerdict {
  return { headers: [['RateLimit', field(limit, count)], limit.policy] }
}

function limited(limit: LimitWithPolicy, count: CountedRequest): RateVerdict {
  const refusal = refuse(
    'rate_limited',
    `This address sends more than ${limit.limit.ratePerSec} requests per second, try again later`,
    { retryAfterSecs: retryAfterSecs(count.waitMs) },
  )
  return { refusal, ...admitted(limit, count) }
}

/** A rate limit per client address (docs/NETWORK.md). */
interface RateLimitSettings {
  /** Tokens per second, and the tokens of a new address; 0 switches the limit off. */
  ratePerSec: number
  /** The most tokens in a bucket; 0 switches the limit off. */
  burst: number
  addressesMax: number
}

/** More than the rounding error of sums of Unix milliseconds in doubles. */
const ROUNDING_MS = 0.01

interface CountedRequest {
  /** Milliseconds until the next token; 0 when admitted. */
  waitMs: number
  remaining: number
}

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
  constructor(
    { ratePerSec, burst, addressesMax }: RateLimitSettings,
    makeBuckets?: (rule: BucketRule) => RateBuckets,
  ) {
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

/** How new buckets start, and which buckets may be evicted. */
interface BucketRule {
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
interface RateBuckets {
  /** Updates the time at which the bucket of an address is full. */
  change(address: string, nowMs: number, change: (fullAtMs: number) => number): void
  /** When the bucket of an address is full; for an unknown address, that of the bucket it would get. */
  peek(address: string, nowMs: number): number
}

/** The buckets of a process with one front; the least recently used are evicted first. */
class LocalBuckets implements RateBuckets {
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
