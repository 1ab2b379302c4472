import { refuse, type Refusal } from '../base/errors.js'

/**
 * Failed password logins of one e-mail in one namespace, with or without an account
 * (docs/adr/0010-auth-state.md).
 */
export interface LockoutState {
  /** Failures since the last success or the last lock. */
  readonly failures: number
  /** Unix milliseconds; 0 if it was never locked. */
  readonly lockedUntilMs: number
  /** Unix milliseconds; the store uses it to find entries that can be deleted. */
  readonly lastFailureAtMs: number
}

/** SERVICE_AUTH_MAX_LOGIN_ATTEMPTS and SERVICE_AUTH_LOCKOUT_DURATION_SECS. */
export interface LockoutPolicy {
  readonly maxAttempts: number
  readonly durationSecs: number
}

/**
 * How long failures are stored after the last one, milliseconds, so that made-up addresses do not fill the
 * store.
 */
const MEMORY_MS = 86_400_000

/** The state of an e-mail without an entry, and after a success. */
export const noFailures: LockoutState = { failures: 0, lockedUntilMs: 0, lastFailureAtMs: 0 }

/** How long the e-mail stays locked, milliseconds; 0 if it is not locked. */
export function lockedForMs(state: LockoutState, nowMs: number): number {
  return Math.max(0, state.lockedUntilMs - nowMs)
}

/**
 * The state after one more failure. The failure that reaches the limit locks the e-mail, and counting
 * restarts when the lock ends. Failures while locked change nothing, so that an attacker cannot prolong a
 * lock.
 * @returns the new state, and whether this failure locked the e-mail
 */
export function afterFailure(
  state: LockoutState,
  policy: LockoutPolicy,
  nowMs: number,
): { state: LockoutState; locked: boolean } {
  if (lockedForMs(state, nowMs) > 0) return { state, locked: false }
  const failures = state.failures + 1
  if (failures < policy.maxAttempts) {
    return { state: { failures, lockedUntilMs: 0, lastFailureAtMs: nowMs }, locked: false }
  }
  const lockedUntilMs = nowMs + policy.durationSecs * 1_000
  return { state: { failures: 0, lockedUntilMs, lastFailureAtMs: nowMs }, locked: true }
}

/**
 * When the entry can be deleted after a failure now, Unix milliseconds: a day later, or a day after the lock
 * ends.
 */
export function lockoutExpiryMs({ lockedUntilMs }: LockoutState, nowMs: number): number {
  return Math.max(lockedUntilMs, nowMs) + MEMORY_MS
}

/** 429 while the e-mail is locked. */
export function lockedRefusal(forMs: number): Refusal {
  return refuse(
    'account_locked',
    'Password sign-in for this e-mail is locked after too many failures: try again later',
    {
      retryAfterSecs: Math.ceil(forMs / 1_000),
    },
  )
}
