import { SignJWT, errors, jwtVerify } from 'jose'
import { fromBase64url } from '../base/bytes.js'
import type { JwtKey, VerifyKey } from './jwt-key.js'
import type { Metadata } from './user.js'

/**
 * The claims of a user's token (RFC 7519; docs/adr/0031-proof-of-a-mailbox.md), by their names in the token, which row
 * policies use too.
 */
export interface TokenClaims {
  /** The user's id. */
  sub: string
  email: string
  app_metadata: Metadata
  user_metadata: Metadata
  /** Unix seconds. */
  iat: number
  /** Unix seconds. */
  exp: number
  /** Names this one token, for revoking it. */
  jti: string
  iss: string
  /** The session that it was issued in. */
  sid: string
  /** How the user signed in (RFC 8176). */
  amr: string[]
  /** The user's `verified` when the token was issued. Absent in tokens of earlier versions. */
  email_verified?: boolean
  /**
   * The e-mail again, if the user has signed in by means of its mailbox or a provider vouched for it. Otherwise absent:
   * an address that was only confirmed may belong to an account that somebody else made with it.
   */
  verified_email?: string
  /**
   * When the user signed in, Unix seconds (OpenID Connect Core, 2); a refresh does not change it. Absent in tokens of
   * earlier versions.
   */
  auth_time?: number
}

/** `expired` only for a token that is valid in every other way. */
export type TokenVerdict = { ok: true; claims: TokenClaims } | { ok: false; reason: 'expired' | 'invalid' }

const ALGORITHM = 'EdDSA'
const TYPE = 'JWT'

/** The most characters of a token: a header block has no room for a longer one. */
const TOKEN_CHARS_MAX = 16_384

const requiredClaims = [
  'sub',
  'email',
  'app_metadata',
  'user_metadata',
  'iat',
  'exp',
  'jti',
  'iss',
  'sid',
  'amr',
]

/** Signs a token (RFC 7519, RFC 8037). */
export async function mintToken(claims: TokenClaims, key: JwtKey): Promise<string> {
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: ALGORITHM, kid: key.kid, typ: TYPE })
    .sign(key.privateKey)
}

/**
 * Checks a token's signature and claims, nothing else: the caller checks revocations. Algorithm, type and key are fixed
 * here; of the token's header only `kid` is used, to choose among `keys`.
 * @param keys those of one namespace
 */
export async function verifyToken(
  token: string,
  keys: readonly VerifyKey[],
  expected: { issuer: string; nowMs: number },
): Promise<TokenVerdict> {
  if (token.length > TOKEN_CHARS_MAX || !isCanonicalJws(token)) return { ok: false, reason: 'invalid' }
  try {
    const { payload } = await jwtVerify(token, ({ kid }) => keyNamed(keys, kid), {
      algorithms: [ALGORITHM],
      typ: TYPE,
      issuer: expected.issuer,
      requiredClaims,
      currentDate: new Date(expected.nowMs),
    })
    const claims = claimsOf(payload)
    return claims === undefined ? { ok: false, reason: 'invalid' } : { ok: true, claims }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return { ok: false, reason: 'expired' }
    if (error instanceof errors.JOSEError) return { ok: false, reason: 'invalid' }
    throw error
  }
}

/** Whether each part of a compact JWS is in the one spelling of its bytes, which jose does not ask for (RFC 7515, 2). */
export function isCanonicalJws(token: string): boolean {
  return token.split('.').every((part) => fromBase64url(part) !== undefined)
}

function keyNamed(keys: readonly VerifyKey[], kid: string | undefined): VerifyKey['publicKey'] {
  const key = keys.find((key) => key.kid === kid)
  if (key === undefined) throw new errors.JWKSNoMatchingKey()
  return key.publicKey
}

/** The claims if each has its type: our own key may have signed other types in another version. */
export function claimsOf(payload: Metadata): TokenClaims | undefined {
  const { sub, email, app_metadata, user_metadata, iat, exp, jti, iss, sid, amr } = payload
  const later = laterClaimsOf(payload)
  if (typeof sub !== 'string' || typeof email !== 'string' || typeof jti !== 'string') return undefined
  if (typeof iss !== 'string' || typeof sid !== 'string' || later === undefined) return undefined
  if (typeof iat !== 'number' || typeof exp !== 'number') return undefined
  if (!isMetadata(app_metadata) || !isMetadata(user_metadata) || !isTexts(amr)) return undefined
  return { sub, email, app_metadata, user_metadata, iat, exp, jti, iss, sid, amr, ...later }
}

type LaterClaims = Pick<TokenClaims, 'auth_time' | 'email_verified' | 'verified_email'>

/** The claims that tokens of earlier versions lack. */
function laterClaimsOf({ auth_time, email_verified, verified_email }: Metadata): LaterClaims | undefined {
  const claims: LaterClaims = {}
  if (typeof auth_time === 'number') claims.auth_time = auth_time
  else if (auth_time !== undefined) return undefined
  if (typeof email_verified === 'boolean') claims.email_verified = email_verified
  else if (email_verified !== undefined) return undefined
  if (typeof verified_email === 'string') claims.verified_email = verified_email
  else if (verified_email !== undefined) return undefined
  return claims
}

function isMetadata(value: unknown): value is Metadata {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}
