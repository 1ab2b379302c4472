import type { Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import type { RequestHeaders } from '../routes/route.js'
import type { HeaderFields } from '../http/answer-head.js'
import { addressText, clientAddress, isWithinAny, limiterKey, type AddressRanges } from './client-address.js'
import {
  rateLimitField,
  rateLimitPolicyField,
  retryAfterSecs,
  type CountedRequest,
  type RateLimiter,
} from './rate-limit.js'
import type { HttpResponse } from '../engine/http-listener.js'

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
