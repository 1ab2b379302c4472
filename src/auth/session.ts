import { limits } from '../base/limits/limits.js'
import type { RandomBytes } from '../base/random.js'
import { type Checked, isKeyNumber, isText, listOf, optional, fields } from '../base/shape.js'

export const isSessionRow = fields({
  /** 32 hex digits. */
  sid: isText,
  userId: isText,
  /** How the user signed in (RFC 8176), for example `["pwd"]`. */
  amr: listOf(isText),
  createdAtMs: isKeyNumber,
  lastUsedAtMs: isKeyNumber,
  /** When the current refresh token expires. */
  expiresAtMs: isKeyNumber,
  /** The current refresh token; the first is 0. */
  generation: isKeyNumber,
  /** When the current refresh token was created by an exchange of the previous one. */
  rotatedAtMs: isKeyNumber,
  /**
   * When the refresh tokens before the previous one were exchanged, the latest first, while they can be
   * repeated. Absent in sessions of earlier versions.
   */
  earlierExchangesMs: optional(listOf(isKeyNumber)),
  /** When every access token of the session has expired. Absent in sessions of earlier versions. */
  tokensEndAtMs: optional(isKeyNumber),
})

/** A sign-in of a user, to which its refresh tokens and the `sid` of its JWTs refer. */
export type SessionRow = Checked<typeof isSessionRow>

export interface TokenLifetimes {
  refreshExpirySecs: number
  jwtExpirySecs: number
}

/** Bytes of a session id. */
export const sidBytes = 16

/**
 * A new session with its first refresh token.
 * @param login the user, the methods, and the lifetimes of the tokens
 */
export function openSession(
  login: { userId: string; amr: string[] } & TokenLifetimes,
  nowMs: number,
  random: RandomBytes,
): SessionRow {
  return {
    sid: Buffer.from(random(sidBytes)).toString('hex'),
    userId: login.userId,
    amr: login.amr,
    createdAtMs: nowMs,
    lastUsedAtMs: nowMs,
    expiresAtMs: nowMs + login.refreshExpirySecs * 1_000,
    generation: 0,
    rotatedAtMs: nowMs,
    tokensEndAtMs: tokensEndAtMs(nowMs, login),
  }
}

/** The session after its refresh token was exchanged: the next generation, with a full lifetime. */
export function rotateSession(session: SessionRow, nowMs: number, lifetimes: TokenLifetimes): SessionRow {
  const exchangesMs = session.generation === 0 ? [] : exchangesOf(session)
  return {
    ...session,
    lastUsedAtMs: nowMs,
    expiresAtMs: nowMs + lifetimes.refreshExpirySecs * 1_000,
    generation: session.generation + 1,
    rotatedAtMs: nowMs,
    earlierExchangesMs: exchangesMs
      .filter((atMs) => isRepeatable(atMs, nowMs))
      .slice(0, limits.refreshRepeatsMax - 1),
    // Tokens that were issued under a longer lifetime stay valid after the setting was lowered.
    tokensEndAtMs: Math.max(session.tokensEndAtMs ?? 0, tokensEndAtMs(nowMs, lifetimes)),
  }
}

/** When the refresh tokens before the current one were exchanged, the latest first. */
export function exchangesOf({ rotatedAtMs, earlierExchangesMs = [] }: SessionRow): number[] {
  return [rotatedAtMs, ...earlierExchangesMs]
}

/** Whether a refresh token that was exchanged at a time is answered again. */
export function isRepeatable(exchangedAtMs: number, nowMs: number): boolean {
  return nowMs - exchangedAtMs <= limits.refreshRepeatMs
}

/** When a session is over: neither its refresh token nor any of its access tokens is valid any more. */
export function sessionEndsAtMs({ expiresAtMs, tokensEndAtMs: endAtMs = expiresAtMs }: SessionRow): number {
  return Math.max(expiresAtMs, endAtMs)
}

/**
 * When every access token that is issued for a session at a time has expired. An exchange can be repeated for
 * some seconds, and the clock of the front that signs the token can be ahead.
 */
export function tokensEndAtMs(
  nowMs: number,
  { jwtExpirySecs }: Pick<TokenLifetimes, 'jwtExpirySecs'>,
): number {
  return nowMs + limits.refreshRepeatMs + limits.clockAheadMsMax + jwtExpirySecs * 1_000
}
