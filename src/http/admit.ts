import { hash, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'
import { limits } from '../base/limits.js'
import type { Principal, RequestHeaders } from '../routes/route.js'
import type { Scope } from '../wire/api-keys.js'
import type { ApiKeys } from './api-keys.js'
import { clientAddress, limiterKey, type TrustedProxies } from './client-address.js'
import { rateLimitField, rateLimitPolicyField, retryAfterSecs, type RateLimiter } from './rate-limit.js'
import type { Tickets } from './tickets.js'
import type { HttpResponse } from './uws.js'

/** What requests are admitted by. */
export interface AdmissionSettings {
  limiter: RateLimiter
  limit: { ratePerSec: number; burst: number }
  trusted: TrustedProxies
  /** SHA-256 of the root key. */
  rootKeyDigest: Buffer
  /** Development only: no credential is asked for. */
  open: boolean
}

/** A rate-limit refusal with the headers that belong to it. */
export interface Limited {
  refusal: Refusal
  headers: readonly (readonly [string, string])[]
}

const root: Principal = { id: 'root', scopes: new Set(['admin:*']), agents: [] }
const anyone: Principal = { id: 'open', scopes: new Set(['admin:*']), agents: [] }

const missing = refuse('unauthorized', 'Expected Authorization: Bearer with a root key or an API key')
const unknown = refuse('unauthorized', 'Expected a key that this server knows')

/** Lets requests in: first the rate of their address, then their credential (contract.md 2.5, 3). */
export class Admission {
  readonly #settings: AdmissionSettings
  readonly #keys: ApiKeys
  readonly #tickets: Tickets
  readonly #clock: Clock
  /**
   * Headers that were found good. A Map compares texts only where their seeded hashes are the same, so looking one up
   * tells a guesser nothing of the texts in it.
   */
  readonly #verified = new Map<string, Principal>()
  #removalsSeen = 0

  constructor(settings: AdmissionSettings, parts: { keys: ApiKeys; tickets: Tickets; clock: Clock }) {
    this.#settings = settings
    this.#keys = parts.keys
    this.#tickets = parts.tickets
    this.#clock = parts.clock
  }

  /** Takes a token of the caller's address; undefined when admitted. */
  limit(response: HttpResponse, headers: RequestHeaders): Limited | undefined {
    const { limiter, limit, trusted } = this.#settings
    if (!limiter.enabled) return undefined
    const peer = new Uint8Array(response.getRemoteAddress())
    const { forwardedFor } = headers
    const waitMs = limiter.take(limiterKey(clientAddress({ peer, forwardedFor, trusted })), this.#clock())
    if (waitMs === 0) return undefined
    const retrySecs = retryAfterSecs(waitMs)
    return {
      refusal: refuse('rate_limited', `Expected at most ${limit.ratePerSec} requests a second`, {
        retryAfterSecs: retrySecs,
      }),
      headers: [
        ['RateLimit', rateLimitField('global', 0, waitMs)],
        ['RateLimit-Policy', rateLimitPolicyField('global', limit)],
      ],
    }
  }

  /** Who asks, allowed to use `scope`; 401 or 403. */
  authorize(authorization: string, scope: Scope | 'none'): Principal | Refusal {
    if (scope === 'none') return anyone
    const principal = this.#authenticate(authorization)
    return 'code' in principal ? principal : this.#allow(principal, scope)
  }

  /** The same for a stream, which can come with a ticket in place of a key. */
  authorizeStream(authorization: string, ticket: string | null, scope: Scope | 'none'): Principal | Refusal {
    if (ticket === null || authorization !== '') return this.authorize(authorization, scope)
    const principal = this.#tickets.redeem(ticket)
    if (principal === undefined)
      return refuse('unauthorized', 'Expected a ticket that is neither used nor expired')
    return scope === 'none' ? principal : this.#allow(principal, scope)
  }

  #allow(principal: Principal, scope: Scope): Principal | Refusal {
    if (principal.scopes.has(scope) || principal.scopes.has('admin:*')) return principal
    return refuse('forbidden', `Expected a key with the scope ${scope}`)
  }

  #authenticate(authorization: string): Principal | Refusal {
    if (authorization === '') return this.#settings.open ? anyone : missing
    if (this.#removalsSeen !== this.#keys.removals || this.#verified.size > limits.credentialsKeptMax) {
      this.#removalsSeen = this.#keys.removals
      this.#verified.clear()
    }
    const known = this.#verified.get(authorization)
    if (known !== undefined) return known
    const principal = this.#identify(authorization)
    if (!('code' in principal)) this.#verified.set(authorization, principal)
    return principal
  }

  #identify(authorization: string): Principal | Refusal {
    // Scheme names are case-insensitive (RFC 9110, 11.1).
    const token = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
    if (token === undefined) return missing
    const digest = hash('sha256', token, 'hex')
    if (timingSafeEqual(Buffer.from(digest, 'hex'), this.#settings.rootKeyDigest)) return root
    return this.#keys.find(digest) ?? unknown
  }
}
