import { SignJWT, errors, jwtVerify } from 'jose'
import { fromBase64url } from '../base/bytes.js'
import type { JwtKey, VerifyKey } from './jwt-key.js'
import type { Metadata } from './user.js'

/** The claims of a user token by their names in the token (RFC 7519; docs/adr/0031-proof-of-a-mailbox.md). */
export interface TokenClaims {
  /** The id of the user. */
  sub: string
  email: string
  app_metadata: Metadata
  user_metadata: Metadata
  /** Unix seconds. */
  iat: number
  /** Unix seconds. */
  exp: number
  /** The id of the token, for its revocation. */
  jti: string
  iss: string
  /** The session in which the token was issued. */
  sid: string
  /** How the user signed in (RFC 8176). */
  amr: string[]
  /** Whether the user was `verified` when the token was issued. Absent in tokens of earlier versions. */
  email_verified?: boolean
  /**
   * The e-mail, if the user has signed in through its mailbox or a provider vouched for it. Absent if the
   * address was only confirmed, because another person may have created the account with it.
   */
  verified_email?: string
  /** When the user signed in, Unix seconds (OpenID Connect Core, 2). Absent in tokens of earlier versions. */
  auth_time?: number
}

/** The result of verifying a token. `expired` means that it is valid otherwise. */
export type TokenVerdict = { ok: true; claims: TokenClaims } | { ok: false; reason: 'expired' | 'invalid' }

const ALGORITHM = 'EdDSA'
const TYPE = 'JWT'

/** Characters of a token: a longer one does not fit into a header block. */
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
 * Verifies the signature and the claims of a token; the caller checks revocations. Algorithm and type are
 * fixed. From the header of the token, only `kid` is used, to select one of `keys`.
 * @param keys the keys of one namespace
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

/** Whether each part of a compact JWS is canonical base64url, which jose does not check (RFC 7515, 2). */
export function isCanonicalJws(token: string): boolean {
  return token.split('.').every((part) => fromBase64url(part) !== undefined)
}

function keyNamed(keys: readonly VerifyKey[], kid: string | undefined): VerifyKey['publicKey'] {
  const key = keys.find((key) => key.kid === kid)
  if (key === undefined) throw new errors.JWKSNoMatchingKey()
  return key.publicKey
}

/** Checks the types of the claims, because another version of this server may have signed different ones. */
export function claimsOf(payload: Metadata): TokenClaims | undefined {
  const { sub, email, app_metadata, user_metadata, iat, exp, jti, iss, sid, amr } = payload
  const newer = newerClaimsOf(payload)
  if (typeof sub !== 'string' || typeof email !== 'string' || typeof jti !== 'string') return undefined
  if (typeof iss !== 'string' || typeof sid !== 'string' || newer === undefined) return undefined
  if (typeof iat !== 'number' || typeof exp !== 'number') return undefined
  if (!isMetadata(app_metadata) || !isMetadata(user_metadata) || !isTexts(amr)) return undefined
  return { sub, email, app_metadata, user_metadata, iat, exp, jti, iss, sid, amr, ...newer }
}

type NewerClaims = Pick<TokenClaims, 'auth_time' | 'email_verified' | 'verified_email'>

/** The claims that tokens of earlier versions lack. */
function newerClaimsOf({ auth_time, email_verified, verified_email }: Metadata): NewerClaims | undefined {
  const claims: NewerClaims = {}
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
