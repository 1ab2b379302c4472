import { checkLicense, type License } from './license.js'

/** What the license settings amount to: a license, or one sentence on why there is none and what to do. */
export type LicenseStanding =
  | { state: 'valid'; license: License }
  | { state: 'absent' | 'expired' | 'invalid'; detail: string }

/** The license settings, with the public key that licenses are checked by, if any is known. */
export interface LicenseGiven {
  licenseKey: string | undefined
  /** 64 hex digits: that of the settings, or of the authority in the data directory. */
  publicKey: string | undefined
  nowMs: number
}

/** Judges the license settings, for the server's start, `check` and `doctor` alike (docs/OPERATIONS.md, Signing people in). */
export async function licenseStanding({
  licenseKey,
  publicKey,
  nowMs,
}: LicenseGiven): Promise<LicenseStanding> {
  if (licenseKey === undefined) {
    return { state: 'absent', detail: 'SERVICE_LICENSE_KEY is not set: every auth route answers 402' }
  }
  if (publicKey === undefined) {
    return {
      state: 'absent',
      detail:
        'SERVICE_LICENSE_KEY cannot be checked, and every auth route answers 402: set SERVICE_LICENSE_PUBLIC_KEY to the ' +
        'public key that strandfast license issue printed with the license',
    }
  }
  const checked = await checkLicense(licenseKey, publicKey, nowMs)
  if (checked.ok) return { state: 'valid', license: checked.license }
  return { state: checked.reason, detail: describe(checked.reason, licenseKey, publicKey) }
}

function describe(reason: 'expired' | 'invalid', licenseKey: string, publicKey: string): string {
  const renew = 'issue one by strandfast license issue'
  if (reason === 'expired') return `SERVICE_LICENSE_KEY has expired: every auth route answers 402, ${renew}`
  const isToken = /^[\w-]+\.[\w-]+\.[\w-]+$/.test(licenseKey)
  const fault = isToken
    ? `SERVICE_LICENSE_KEY was not issued by the license authority ${publicKey}`
    : 'SERVICE_LICENSE_KEY is not a license, which is three base64url parts with dots between them'
  return `${fault}: every auth route answers 402, ${renew}`
}
