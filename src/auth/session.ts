import type { RandomBytes } from '../base/random.js'

/** A sign-in of a user, to which its refresh tokens and the `sid` of its JWTs refer. */
export interface SessionRow {
  /** 32 hex digits. */
  sid: string
  userId: string
  /** How the user signed in (RFC 8176), for example `["pwd"]`. */
  amr: string[]
  createdAtMs: number
  lastUsedAtMs: number
  /** When the current refresh token expires. */
  expiresAtMs: number
  /** The current refresh token; the first is 0. */
  generation: number
  /** When the current refresh token was created by an exchange of the previous one. */
  rotatedAtMs: number
}

/** Bytes of a session id. */
export const sidBytes = 16

/**
 * A new session with its first refresh token.
 * @param login the user, the methods, and the lifetime of the token
 */
export function openSession(
  login: { userId: string; amr: string[]; refreshExpirySecs: number },
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
  }
}

/** The session after its refresh token was exchanged: the next generation, with a full lifetime. */
export function rotateSession(session: SessionRow, nowMs: number, refreshExpirySecs: number): SessionRow {
  return {
    ...session,
    lastUsedAtMs: nowMs,
    expiresAtMs: nowMs + refreshExpirySecs * 1_000,
    generation: session.generation + 1,
    rotatedAtMs: nowMs,
  }
}
