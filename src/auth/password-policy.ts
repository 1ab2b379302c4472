import common from './common-passwords.json' with { type: 'json' }
import { deriveSeed } from '../strand/keys.js'

/** The fewest Unicode characters of a password. */
export const passwordCharsMin = 8

/** The most bytes of a password in UTF-8. */
export const passwordBytesMax = 1_024

/**
 * Checks a new password.
 * @param blocklist results of `foldPassword`; `undefined` if SERVICE_AUTH_PASSWORD_BLOCKLIST is off
 * @returns the reasons of a `weak_password` answer; empty if the password is acceptable
 */
export function passwordFaults(password: string, blocklist: ReadonlySet<string> | undefined): string[] {
  // Checked first, so that the other checks never process a long text.
  if (Buffer.byteLength(password) > passwordBytesMax) {
    return [`Expected at most ${passwordBytesMax.toLocaleString('en')} bytes`]
  }
  const faults: string[] = []
  if ([...password].length < passwordCharsMin) faults.push(`Expected at least ${passwordCharsMin} characters`)
  if (blocklist?.has(foldPassword(password)) === true) {
    faults.push('Expected a password that is not on the list of common ones')
  }
  return faults
}

/**
 * Normalizes a password for the blocklist: case and compatibility forms do not make a common password rare.
 */
export function foldPassword(password: string): string {
  return password.normalize('NFKC').toLowerCase().normalize('NFKC')
}

let bundled: ReadonlySet<string> | undefined

/**
 * The bundled common passwords of at least 8 characters, folded. The first call takes some tens of
 * milliseconds.
 */
export function bundledBlocklist(): ReadonlySet<string> {
  bundled ??= new Set(common.passwords.flatMap((line) => line.split(' ')).map(foldPassword))
  return bundled
}

const PEPPER_INFO = 'strandfast/password-pepper/v1'

/** The pepper of password hashes, 32 bytes, derived from the master seed. */
export function passwordPepper(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, PEPPER_INFO)
}
