import { randomBytes } from 'node:crypto'
import { decodeJwt, errors } from 'jose'
import {
  decodeDeviceToken,
  type DeviceClaim,
  deviceKey,
  encodeDeviceToken,
} from '../../../auth/device-token.js'
import { type TokenClaims, mintToken, verifyToken } from '../../../auth/jwt.js'
import { type JwtKey, type PublicJwk, jwtKey } from '../../../auth/jwt-key.js'
import { type Namespace, organismNamespace } from '../../../auth/namespace.js'
import { decodeRefreshToken, encodeRefreshToken, refreshKey } from '../../../auth/refresh-token.js'
import { boundedCache } from '../../../base/bounded-cache.js'
import type { Clock } from '../../../base/clock.js'
import { refuse, statusOf, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { KeyEpochs, SignedIn } from '../../../protocol/auth-messages.js'
import type { IssuedTokens, TokenIssuer } from '../../routes/auth-route.js'
import type { Principal, TokenUser } from '../../routes/route.js'
import { agentSeed } from '../../../strand/keys.js'
import type { Revocations } from './revocations.js'

/** The parts needed to issue and verify tokens. */
export interface UserTokensParts {
  masterSeed: Uint8Array
  /** Changes with each restore, which invalidates all earlier tokens (docs/adr/0030-restored-tokens.md). */
  tokenEra: number
  issuer: string
  jwtExpirySecs: number
  root: Namespace
  revocations: Revocations
  clock: Clock
  /** Why the namespace does not exist, or why its shard cannot answer. */
  missing(namespace: Namespace): undefined | Promise<Refusal | undefined>
  /** The valid keys of a namespace. @throws Error if its shard does not answer */
  epochsOf(namespace: Namespace): Promise<KeyEpochs>
}

export type UserPrincipal = Principal & { user: TokenUser }

interface NamespaceKeys {
  current: JwtKey
  /** Published before it signs, so that services that cache the keys know it. */
  next: JwtKey
  retired: { key: JwtKey; untilMs: number }[]
}

const JTI_BYTES = 16

const invalid = refuse('invalid_token', 'The token was not issued by this server')
const expired = refuse('token_expired', 'The token has expired')
const revoked = refuse('token_revoked', 'The token was revoked, or its session has ended')

const noScopes: ReadonlySet<never> = new Set()

/** Issues tokens of users and identifies users by their tokens. */
export class UserTokens implements TokenIssuer {
  readonly #parts: UserTokensParts
  readonly #refreshKey: Buffer
  readonly #deviceKey: Buffer
  readonly #keys = boundedCache<string, Promise<NamespaceKeys>>(limits.namespaceKeysMax)

  constructor(parts: UserTokensParts) {
    this.#parts = parts
    this.#refreshKey = refreshKey(parts.masterSeed, parts.tokenEra)
    this.#deviceKey = deviceKey(parts.masterSeed, parts.tokenEra)
  }

  /** Verifies a token and returns its user; 401 invalid_token, token_expired or token_revoked. */
  async identify(token: string): Promise<UserPrincipal | Refusal> {
    const namespace = this.#namespaceOf(token)
    if (namespace === undefined) return invalid
    const missing = await this.#parts.missing(namespace)
    if (missing !== undefined) return statusOf(missing) === 404 ? invalid : missing
    const { current, retired } = await this.#keysOf(namespace)
    const verdict = await verifyToken(token, [current, ...this.#unexpired(retired)], {
      issuer: this.#issuerOf(namespace),
      nowMs: this.#parts.clock(),
    })
    if (!verdict.ok) return verdict.reason === 'expired' ? expired : invalid
    const principal = principalOf(namespace, verdict.claims)
    return this.revalidate(principal.user) ?? principal
  }

  /** Why a token that was valid no longer is: 401 token_expired or token_revoked. */
  revalidate(user: TokenUser): Refusal | undefined {
    if (user.claims.exp * 1_000 <= this.#parts.clock()) return expired
    return this.#parts.revocations.has(user) ? revoked : undefined
  }

  async issue(namespace: Namespace, { user, session, generation }: SignedIn): Promise<IssuedTokens> {
    const { jwtExpirySecs, clock } = this.#parts
    const { current } = await this.#keysOf(namespace)
    const iat = Math.floor(clock() / 1_000)
    const claims: TokenClaims = {
      sub: user.userId,
      email: user.email,
      app_metadata: user.appMetadata,
      user_metadata: user.userMetadata,
      iat,
      exp: iat + jwtExpirySecs,
      jti: randomBytes(JTI_BYTES).toString('base64url'),
      iss: this.#issuerOf(namespace),
      sid: session.sid,
      amr: session.amr,
      auth_time: Math.floor(session.createdAtMs / 1_000),
      email_verified: user.verified,
      ...(user.mailboxProven && { verified_email: user.email }),
    }
    const { userId } = user
    const device = { userId, deviceId: session.sid, issuedAtMs: session.rotatedAtMs }
    return {
      token: await mintToken(claims, current),
      refresh_token: encodeRefreshToken(this.#refreshKey, namespace.id, { sid: session.sid, generation }),
      device_token: encodeDeviceToken(this.#deviceKey, namespace.id, device),
      token_type: 'Bearer',
      expires_in: jwtExpirySecs,
    }
  }

  readRefreshToken(namespace: Namespace, token: string): { sid: string; generation: number } | undefined {
    return decodeRefreshToken(this.#refreshKey, namespace.id, token)
  }

  readDeviceToken(namespace: Namespace, token: string): DeviceClaim | undefined {
    return decodeDeviceToken(this.#deviceKey, namespace.id, token)
  }

  async publicKeys(namespace: Namespace): Promise<PublicJwk[]> {
    const { current, next, retired } = await this.#keysOf(namespace)
    return [current, next, ...this.#unexpired(retired)].map(({ publicJwk }) => publicJwk)
  }

  /** Forgets the signing keys of a namespace, after a rotation. */
  rotated(namespaceId: string): void {
    this.#keys.delete(namespaceId)
  }

  /** Forgets all signing keys, because the notice of a rotation may have been lost. */
  forgetKeys(): void {
    this.#keys.clear()
  }

  /** The namespace that a token claims, which its signature has to prove. */
  #namespaceOf(token: string): Namespace | undefined {
    try {
      const { iss }: { iss?: unknown } = decodeJwt(token)
      const { issuer, root } = this.#parts
      if (iss === issuer) return root
      const prefix = `${issuer}${ORGANISMS}`
      // The signature is not verified yet, so this can be any text.
      if (typeof iss !== 'string' || !iss.startsWith(prefix)) return undefined
      return organismNamespace(iss.slice(prefix.length))
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined
      throw error
    }
  }

  #issuerOf({ id }: Namespace): string {
    return id === '' ? this.#parts.issuer : `${this.#parts.issuer}${ORGANISMS}${id}`
  }

  #unexpired(retired: NamespaceKeys['retired']): JwtKey[] {
    const nowMs = this.#parts.clock()
    return retired.filter(({ untilMs }) => untilMs > nowMs).map(({ key }) => key)
  }

  #keysOf(namespace: Namespace): Promise<NamespaceKeys> {
    const known = this.#keys.get(namespace.id)
    if (known !== undefined) return known
    const derived = this.#deriveKeys(namespace)
    this.#keys.set(namespace.id, derived)
    // Retried by the next request if the shard cannot answer now.
    derived.catch(() => {
      if (this.#keys.peek(namespace.id) === derived) this.#keys.delete(namespace.id)
    })
    return derived
  }

  async #deriveKeys(namespace: Namespace): Promise<NamespaceKeys> {
    const { epoch, retired } = await this.#parts.epochsOf(namespace)
    const seed = agentSeed(this.#parts.masterSeed, namespace.agent)
    const keyOf = (epoch: number) => jwtKey(seed, namespace.id, this.#parts.tokenEra + epoch)
    return {
      current: await keyOf(epoch),
      next: await keyOf(epoch + 1),
      retired: await Promise.all(
        retired.map(async ({ epoch, untilMs }) => ({ key: await keyOf(epoch), untilMs })),
      ),
    }
  }
}

/** Between the issuer and an organism's id in the `iss` of the organism's tokens. */
const ORGANISMS = '/v1/organisms/'

export function principalOf(namespace: Namespace, claims: TokenClaims): UserPrincipal {
  const user = userOf(namespace, claims)
  return { id: `user:${namespace.id}:${claims.sub}`, scopes: noScopes, agents: [], user }
}

/** A user with the claims that row policies use; all commands of the token share one object. */
function userOf(namespace: Namespace, claims: TokenClaims): TokenUser {
  const { sub, email, verified_email, app_metadata, user_metadata } = claims
  const proven = verified_email === undefined ? {} : { verified_email }
  return { namespace, claims, access: { claims: { sub, email, ...proven, app_metadata, user_metadata } } }
}
