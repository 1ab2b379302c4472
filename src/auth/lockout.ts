import { refuse, type Refusal } from '../base/errors.js'

/**
 * Failed password logins of one e-mail in one namespace, whether it has an account or not
 * (docs/adr/0010-auth-state.md).
 */
export interface LockoutState {
  /** Failures since the last success or the last lock. */
  readonly failures: number
  /** Unix milliseconds; 0 when never locked. */
  readonly lockedUntilMs: number
  /** Unix milliseconds: the store uses it to find entries that can be deleted. */
  readonly lastFailureAtMs: number
}

/** SERVICE_AUTH_MAX_LOGIN_ATTEMPTS and SERVICE_AUTH_LOCKOUT_DURATION_SECS. */
export interface LockoutPolicy {
  readonly maxAttempts: number
  readonly durationSecs: number
}

/**
 * How long failures are remembered after the last one, milliseconds, so that made-up addresses do not fill the store.
 */
const MEMORY_MS = 86_400_000

/** An e-mail without failures: the state where there is no entry, and after a success. */
export const noFailures: LockoutState = { failures: 0, lockedUntilMs: 0, lastFailureAtMs: 0 }

/** How long the e-mail stays locked. @returns milliseconds, 0 when it is not locked */
export function lockedForMs(state: LockoutState, nowMs: number): number {
  return Math.max(0, state.lockedUntilMs - nowMs)
}

/**
 * The state after one more failure. The failure that reaches the limit locks, and the count starts again when the lock
 * ends. Failures while locked change nothing, so nobody can prolong a lock from outside.
 * @returns the new state, and whether this failure locked
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

/** Until when the entry is kept after a failure now: for a day, which begins again when a lock has ended. */
export function keptUntilMs({ lockedUntilMs }: LockoutState, nowMs: number): number {
  return Math.max(lockedUntilMs, nowMs) + MEMORY_MS
}

/** 429 while the e-mail is locked. */
export function lockedRefusal(forMs: number): Refusal {
  return refuse('account_locked', 'Logins by password are locked after too many failures, try again later', {
    retryAfterSecs: Math.ceil(forMs / 1_000),
  })
}
