import { createHmac, timingSafeEqual } from 'node:crypto'
import { assert } from '../base/assert.js'
import { fromBase64url } from '../base/bytes.js'
import { deriveSeed } from '../strand/keys.js'
import { exchangesOf, isRepeatable, sessionEndsAtMs, type SessionRow, sidBytes } from './session.js'

const GENERATION_BYTES = 4
const GENERATION_MAX = 0xffff_ffff
const CLAIM_BYTES = sidBytes + GENERATION_BYTES
const TOKEN_CHARS = 70
const sidShape = /^[0-9a-f]{32}$/

export interface RefreshClaim {
  sid: string
  /** The index of the token within its session. */
  generation: number
}

/**
 * The key of the MAC in refresh tokens, 32 bytes, derived from the master seed.
 * @param tokenEra of the data directory: 0 until it is restored from a backup
 */
export function refreshKey(masterSeed: Uint8Array, tokenEra = 0): Buffer {
  return deriveSeed(masterSeed, `strandfast/refresh-token/v1${tokenEra === 0 ? '' : `/${tokenEra}`}`)
}

/**
 * Creates a refresh token: base64url(sid ‖ generation, 32 bit ‖ HMAC-SHA256 over namespace, sid and
 * generation). It is not stored; the row of the session has the current generation.
 * @returns 70 characters
 */
export function encodeRefreshToken(key: Uint8Array, namespaceId: string, claim: RefreshClaim): string {
  assert(sidShape.test(claim.sid), 'a session id has 32 hex digits')
  assert(claim.generation >= 0 && claim.generation <= GENERATION_MAX, 'a generation is a number of 32 bits')
  const bytes = Buffer.alloc(CLAIM_BYTES)
  bytes.write(claim.sid, 'hex')
  bytes.writeUInt32BE(claim.generation, sidBytes)
  return Buffer.concat([bytes, macOf(key, namespaceId, bytes)]).toString('base64url')
}

/**
 * Verifies a refresh token.
 * @returns `undefined` (`refresh_invalid`) unless this key created it for this namespace
 */
export function decodeRefreshToken(
  key: Uint8Array,
  namespaceId: string,
  token: string,
): RefreshClaim | undefined {
  const bytes = token.length === TOKEN_CHARS ? fromBase64url(token) : undefined
  if (bytes === undefined) return undefined
  const claim = bytes.subarray(0, CLAIM_BYTES)
  if (!timingSafeEqual(bytes.subarray(CLAIM_BYTES), macOf(key, namespaceId, claim))) return undefined
  return { sid: claim.toString('hex', 0, sidBytes), generation: claim.readUInt32BE(sidBytes) }
}

function macOf(key: Uint8Array, namespaceId: string, claim: Uint8Array): Buffer {
  // The claim has a fixed length, so that two namespaces never give the same bytes.
  return createHmac('sha256', key).update(namespaceId).update(claim).digest()
}

/** The answer to a refresh token; `generation` is that of the token in the answer. */
export type RefreshDecision =
  | { kind: 'rotate'; generation: number }
  | { kind: 'repeat'; generation: number }
  | { kind: 'reused' }
  | { kind: 'expired' }

/**
 * Decides about a refresh token with a valid MAC. The current token is exchanged for the next one. An earlier
 * token returns the current one for `refreshRepeatMs` after its own exchange: the tabs of a browser exchange
 * one token at the same time, and answers get lost. Any other use of an earlier token means that it was stolen
 * or its successor was: `reused` ends the session, as long as any of its tokens is valid.
 */
export function decideRefresh(session: SessionRow, generation: number, nowMs: number): RefreshDecision {
  const expired = nowMs >= session.expiresAtMs
  const behind = session.generation - generation
  if (nowMs >= sessionEndsAtMs(session) || (behind === 0 && expired)) return { kind: 'expired' }
  if (behind === 0) return { kind: 'rotate', generation: session.generation + 1 }
  const exchangedAtMs = exchangesOf(session)[behind - 1]
  if (exchangedAtMs === undefined || !isRepeatable(exchangedAtMs, nowMs)) return { kind: 'reused' }
  return expired ? { kind: 'expired' } : { kind: 'repeat', generation: session.generation }
}
