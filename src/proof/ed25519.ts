import type { Check } from './job.js'

/*
 * The keys and signatures that verifiers accept (docs/FORMAT.md, Signatures). Libraries disagree on points of
 * small order and on values with more than one encoding, so these are refused before they reach a library.
 */

/** Little-endian hex of y, without the sign bit, of the points whose order is 1, 2, 4 or 8. */
const SMALL_ORDER_Y = new Set([
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000000',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
])

/** Little-endian hex of y from p = 2^255-19 up to 2^255-1, which are not reduced modulo p. */
const NOT_REDUCED_Y = /^(?:e[d-f]|f[0-9a-f])(?:ff){30}7f$/

/** The order of the group, 2^252 + 27742317777372353535851937790883648493, big-endian. */
const ORDER = '1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed'

const POINT_DIGITS = 64
const SIGNATURE = /^[0-9a-f]{128}$/

let lastKey = ''
let isLastKeyValid = false

/** Whether a public key is acceptable: 64 hex digits, y below p, and not of small order. */
export function mayBeKey(publicKey: string): boolean {
  // Cached because a strand rarely changes its key.
  if (publicKey !== lastKey) {
    isLastKeyValid = /^[0-9a-f]{64}$/.test(publicKey) && isPoint(publicKey)
    lastKey = publicKey
  }
  return isLastKeyValid
}

/** Whether a signature is acceptable: 128 hex digits, R as for a key, S below the order of the group. */
export function mayVerify(publicKey: string, signature: string): boolean {
  if (!mayBeKey(publicKey) || !SIGNATURE.test(signature)) return false
  return isPoint(signature.slice(0, POINT_DIGITS)) && isReduced(signature.slice(POINT_DIGITS))
}

/** Verifies a signature. Only signatures that pass `mayVerify` become a job. */
export function* verifies(publicKey: string, message: Uint8Array, signature: string): Check<boolean> {
  if (!mayVerify(publicKey, signature)) return false
  return (yield { kind: 'signature', publicKey, message, signature }) === true
}

function isPoint(hex: string): boolean {
  const y = withoutSign(hex)
  return !SMALL_ORDER_Y.has(y) && !NOT_REDUCED_Y.test(y)
}

/** The highest bit of the last byte is the sign of x. */
function withoutSign(hex: string): string {
  const high = Number.parseInt(hex.charAt(POINT_DIGITS - 2), 16)
  return high < 8 ? hex : hex.slice(0, -2) + (high - 8).toString(16) + hex.slice(-1)
}

function isReduced(scalar: string): boolean {
  // Only numbers from 2^252 on have to be compared.
  if (scalar.charAt(POINT_DIGITS - 2) === '0') return true
  const bigEndian = (scalar.match(/../g) ?? []).reverse().join('')
  return bigEndian < ORDER
}
