import { createPublicKey } from 'node:crypto'
import { SignJWT, errors, jwtVerify } from 'jose'
import { isCanonicalJws } from './jwt.js'
import { jwtKeyOfSeed } from './jwt-key.js'

/** The content of a license key (docs/SIGN-IN.md). */
export interface License {
  licensee: string
  /** Unix milliseconds. */
  expiresAtMs: number
  features: string[]
}

/** Why a license key is refused. Requests are answered `license_required` in both cases. */
export type LicenseFault = 'expired' | 'invalid'

const ALGORITHM = 'EdDSA'
// Differs from the type of user tokens, so that a token signed with the same key cannot pass as a license.
const TYPE = 'license+jwt'
const DAY_MS = 86_400_000

/**
 * Issues a license key: a compact JWS (RFC 7515) with the claims `{licensee, exp, features}`.
 * @param authoritySeed the Ed25519 seed of the license authority, 32 bytes
 * @param grant `days` until the license expires
 */
export async function issueLicense(
  authoritySeed: Buffer,
  grant: { licensee: string; days: number; features: string[] },
  nowMs: number,
): Promise<string> {
  const key = await jwtKeyOfSeed(authoritySeed)
  return new SignJWT({ licensee: grant.licensee, features: grant.features })
    .setExpirationTime(Math.floor((nowMs + grant.days * DAY_MS) / 1_000))
    .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
    .sign(key.privateKey)
}

/**
 * Verifies a license key offline.
 * @param publicKeyHex the Ed25519 key of the license authority, 64 hex digits
 */
export async function checkLicense(
  token: string,
  publicKeyHex: string,
  nowMs: number,
): Promise<{ ok: true; license: License } | { ok: false; reason: LicenseFault }> {
  if (!/^[0-9a-f]{64}$/i.test(publicKeyHex) || !isCanonicalJws(token)) return { ok: false, reason: 'invalid' }
  const x = Buffer.from(publicKeyHex, 'hex').toString('base64url')
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } })
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [ALGORITHM],
      typ: TYPE,
      requiredClaims: ['licensee', 'exp', 'features'],
      currentDate: new Date(nowMs),
    })
    const license = licenseOf(payload)
    return license === undefined ? { ok: false, reason: 'invalid' } : { ok: true, license }
  } catch (error) {
    if (error instanceof errors.JWTExpired) return { ok: false, reason: 'expired' }
    if (error instanceof errors.JOSEError) return { ok: false, reason: 'invalid' }
    throw error
  }
}

function licenseOf(payload: Record<string, unknown>): License | undefined {
  const { licensee, exp, features } = payload
  if (typeof licensee !== 'string' || typeof exp !== 'number' || !Array.isArray(features)) return undefined
  if (!features.every((feature) => typeof feature === 'string')) return undefined
  return { licensee, expiresAtMs: exp * 1_000, features }
}

/** A license, or a sentence with the fault of the settings and what to do. */
type LicenseStatus =
  | { state: 'valid'; license: License }
  | { state: 'absent' | 'expired' | 'invalid'; detail: string }

interface LicenseSettings {
  licenseKey: string | undefined
  /** 64 hex digits: from the settings, or of the authority in the data directory. */
  publicKey: string | undefined
  nowMs: number
}

/** Checks the license settings, for the start of the server, `check` and `doctor` (docs/SIGN-IN.md). */
export async function licenseStatus({
  licenseKey,
  publicKey,
  nowMs,
}: LicenseSettings): Promise<LicenseStatus> {
  if (licenseKey === undefined) {
    return { state: 'absent', detail: 'SERVICE_LICENSE_KEY is not set: every auth route answers 402' }
  }
  if (publicKey === undefined) {
    return {
      state: 'absent',
      detail:
        'SERVICE_LICENSE_KEY cannot be verified, and every auth route answers 402: set SERVICE_LICENSE_PUBLIC_KEY to ' +
        'the public key that strandfast license issue printed with the license',
    }
  }
  const checked = await checkLicense(licenseKey, publicKey, nowMs)
  if (checked.ok) return { state: 'valid', license: checked.license }
  return { state: checked.reason, detail: describe(checked.reason, licenseKey, publicKey) }
}

function describe(reason: 'expired' | 'invalid', licenseKey: string, publicKey: string): string {
  const renew = 'issue a new one with strandfast license issue'
  if (reason === 'expired') return `SERVICE_LICENSE_KEY has expired: every auth route answers 402, ${renew}`
  const isToken = /^[\w-]+\.[\w-]+\.[\w-]+$/.test(licenseKey)
  const fault = isToken
    ? `SERVICE_LICENSE_KEY was not issued by the license authority ${publicKey}`
    : 'SERVICE_LICENSE_KEY is not a license key (three base64url parts with dots between them)'
  return `${fault}: every auth route answers 402, ${renew}`
}
