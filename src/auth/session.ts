import type { RandomBytes } from '../base/random.js'

/** One login of one user, to which its refresh tokens and the `sid` of its JWTs refer. */
export interface SessionRow {
  /** 32 hex digits. */
  sid: string
  userId: string
  /** How the user signed in (RFC 8176), for example `["pwd"]`. */
  amr: string[]
  createdAtMs: number
  lastUsedAtMs: number
  /** When the refresh token in force ends. */
  expiresAtMs: number
  /** The refresh token in force; the first is 0. */
  generation: number
  /** When `generation` was made, that is, when the one before was exchanged. */
  rotatedAtMs: number
}

/** Bytes of a session's id. */
export const sidBytes = 16

/**
 * A new session with its first refresh token. @param login who signed in, how, and how long the token lives, seconds
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

/** The session after its refresh token was exchanged: the next generation, with a whole lifetime of its own. */
export function rotateSession(session: SessionRow, nowMs: number, refreshExpirySecs: number): SessionRow {
  return {
    ...session,
    lastUsedAtMs: nowMs,
    expiresAtMs: nowMs + refreshExpirySecs * 1_000,
    generation: session.generation + 1,
    rotatedAtMs: nowMs,
  }
}
