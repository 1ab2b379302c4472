import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../base/assert.js'
import { fromBase64url } from '../base/bytes.js'
import { limits } from '../base/limits/limits.js'
import { deriveSeed } from '../strand/keys.js'
import type { UserRow } from './user.js'

/*
 * A device token proves that its bearer has signed in as a user before. It does not sign in. Failed logins
 * with a device token are counted separately, so that attackers without one cannot lock out the user (OWASP,
 * Blocking Brute Force Attacks, Device Cookies). It is only sent in bodies, so that a page of another site
 * cannot make a browser send it.
 */

const ID_BYTES = 16
const TIME_BYTES = 6
const CLAIM_BYTES = 2 * ID_BYTES + TIME_BYTES
const TOKEN_CHARS = 94
const userIdShape = /^usr_[0-9a-f]{32}$/
const deviceIdShape = /^[0-9a-f]{32}$/

export interface DeviceClaim {
  userId: string
  /** The session of that sign-in, which may have ended; 32 hex digits. */
  deviceId: string
  /** When the tokens of the session were issued, Unix milliseconds. */
  issuedAtMs: number
}

/**
 * The key of the MAC in device tokens, 32 bytes, derived from the master seed.
 * @param tokenEra of the data directory: 0 until it is restored from a backup
 */
export function deviceKey(masterSeed: Uint8Array, tokenEra = 0): Buffer {
  return deriveSeed(masterSeed, `strandfast/device-token/v1${tokenEra === 0 ? '' : `/${tokenEra}`}`)
}

/**
 * Creates a device token: base64url(user ‖ device ‖ milliseconds, 48 bit ‖ HMAC-SHA256 over namespace and
 * these). It is not stored.
 * @returns 94 characters
 */
export function encodeDeviceToken(key: Uint8Array, namespaceId: string, claim: DeviceClaim): string {
  const { userId, deviceId, issuedAtMs } = claim
  assert(userIdShape.test(userId) && deviceIdShape.test(deviceId), 'a device token has a user and a session')
  const bytes = Buffer.alloc(CLAIM_BYTES)
  bytes.write(userId.slice('usr_'.length), 'hex')
  bytes.write(deviceId, ID_BYTES, 'hex')
  bytes.writeUIntBE(issuedAtMs, 2 * ID_BYTES, TIME_BYTES)
  return Buffer.concat([bytes, macOf(key, namespaceId, bytes)]).toString('base64url')
}

/** Verifies a device token. @returns `undefined` unless it was created with this key for this namespace */
export function decodeDeviceToken(
  key: Uint8Array,
  namespaceId: string,
  token: string,
): DeviceClaim | undefined {
  const bytes = token.length === TOKEN_CHARS ? fromBase64url(token) : undefined
  if (bytes === undefined) return undefined
  const claim = bytes.subarray(0, CLAIM_BYTES)
  if (!timingSafeEqual(bytes.subarray(CLAIM_BYTES), macOf(key, namespaceId, claim))) return undefined
  return {
    userId: `usr_${claim.toString('hex', 0, ID_BYTES)}`,
    deviceId: claim.toString('hex', ID_BYTES, 2 * ID_BYTES),
    issuedAtMs: claim.readUIntBE(2 * ID_BYTES, TIME_BYTES),
  }
}

/**
 * Whether a device token is valid for a user: not too old, and issued after the password was last set and the
 * mailbox was proven. Before that, another person may have signed in and collected tokens to guess passwords
 * with.
 */
export function isDeviceOf(
  { userId, issuedAtMs }: DeviceClaim,
  user: Pick<UserRow, 'userId' | 'devicesSinceMs'>,
  nowMs: number,
): boolean {
  if (userId !== user.userId || issuedAtMs < (user.devicesSinceMs ?? 0)) return false
  return nowMs - issuedAtMs < limits.deviceTokenSecs * 1_000
}

function macOf(key: Uint8Array, namespaceId: string, claim: Uint8Array): Buffer {
  // The claim has a fixed length, so that two namespaces never give the same bytes.
  return createHmac('sha256', key).update(namespaceId).update(claim).digest()
}
