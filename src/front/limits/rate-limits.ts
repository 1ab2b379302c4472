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
import type { HttpResponse } from '../door/door.js'

/** A limit of requests for each address, with its name in the headers. */
export interface NamedLimit {
  name: 'global' | 'auth'
  limiter: RateLimiter
  limit: { ratePerSec: number; burst: number }
}

/** The result of counting a request. */
export interface Rated {
  /** 429 rate_limited; absent when admitted. */
  refusal?: Refusal
  /** `RateLimit` and `RateLimit-Policy`, which are sent with the answer; none if no limit counts. */
  headers: HeaderFields
}

/** A request that no limit counts. */
const notRated: Rated = { headers: [] }

/** The limits, and which addresses they count. */
export interface RateSettings {
  global: NamedLimit
  auth: NamedLimit
  /** Not counted by the global limit. */
  exempt: AddressRanges
  /** Proxies whose X-Forwarded-For is believed. */
  trusted: AddressRanges
}

/** A limit, with the header that is always the same. */
interface LimitWithPolicy extends NamedLimit {
  policy: readonly ['RateLimit-Policy', string]
}

/**
 * The limits of requests for each address: the global one on every route and, on auth routes, a second one beside it.
 * The global one does not count exempt addresses. The other counts them, too: it slows down guessing of passwords,
 * which a machine in the local network can do as well (docs/OPERATIONS.md, Rate limits).
 */
export class RateLimits {
  readonly #global: LimitWithPolicy
  readonly #auth: LimitWithPolicy
  readonly #both: readonly ['RateLimit-Policy', string]
  readonly #exempt: AddressRanges
  readonly #trusted: AddressRanges
  readonly #clock: Clock

  constructor({ global, auth, exempt, trusted }: RateSettings, clock: Clock) {
    this.#global = toldOf(global)
    this.#auth = toldOf(auth)
    this.#both = ['RateLimit-Policy', `${this.#global.policy[1]}, ${this.#auth.policy[1]}`]
    this.#exempt = exempt
    this.#trusted = trusted
    this.#clock = clock
  }

  /** Counts a request for the address of its caller. */
  limit(response: HttpResponse, headers: RequestHeaders, isAuth: boolean): Rated {
    const enabled = this.#global.limiter.enabled || (isAuth && this.#auth.limiter.enabled)
    return enabled ? this.count(this.#address(response, headers), isAuth) : notRated
  }

  /** The address of a caller as text, for audit records. */
  addressOf(response: HttpResponse, headers: RequestHeaders): string {
    return addressText(this.#address(response, headers))
  }

  #address(response: HttpResponse, { forwardedFor }: RequestHeaders): Uint8Array {
    const peer = new Uint8Array(response.getRemoteAddress())
    return clientAddress({ peer, forwardedFor, trusted: this.#trusted })
  }

  /** Takes a token from each bucket that counts the address, whose bytes are those of `clientAddress`. */
  count(address: Uint8Array, isAuth: boolean): Rated {
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

function toldOf(named: NamedLimit): LimitWithPolicy {
  return { ...named, policy: ['RateLimit-Policy', rateLimitPolicyField(named.name, named.limit)] }
}

function counted({ limiter }: LimitWithPolicy, key: string, nowMs: number): CountedRequest | undefined {
  return limiter.enabled ? limiter.count(key, nowMs) : undefined
}

function field({ name }: LimitWithPolicy, { remaining, waitMs }: CountedRequest): string {
  return rateLimitField(name, remaining, waitMs)
}

function admitted(told: LimitWithPolicy, count: CountedRequest): Rated {
  return { headers: [['RateLimit', field(told, count)], told.policy] }
}

function limited(told: LimitWithPolicy, count: CountedRequest): Rated {
  const refusal = refuse(
    'rate_limited',
    `This address sends more than ${told.limit.ratePerSec} requests a second, try again later`,
    {
      retryAfterSecs: retryAfterSecs(count.waitMs),
    },
  )
  return { refusal, ...admitted(told, count) }
}
