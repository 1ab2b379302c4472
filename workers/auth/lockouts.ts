import { afterFailure, type LockoutState, lockedForMs, noFailures } from '../../src/auth/lockout.js'
import type { AuthSpace } from './space.js'

/** The lockout of one e-mail, with the failures that no audit record has told of yet. */
interface LockoutRow extends LockoutState {
  /** When `auth/login_failed` was last written, Unix milliseconds. */
  reportedAtMs: number
  unreported: number
}

const noRow: LockoutRow = { ...noFailures, reportedAtMs: 0, unreported: 0 }

/** One audit record stands for the failures of one e-mail within this time (contract.md 6.11). */
const REPORT_INTERVAL_MS = 60_000

/** Failures are remembered for a day. */
const MEMORY_MS = 86_400_000

/** How the e-mail stands; there is no difference between known and unknown ones. */
export function lockoutOf(space: AuthSpace, email: string): { lockedForMs: number; failures: number } {
  const row = space.find<LockoutRow>('lockout', email) ?? noRow
  return { lockedForMs: lockedForMs(row, space.nowMs), failures: row.failures }
}

/** Until when the e-mail is locked, Unix milliseconds; 0 when it is not. */
export function lockedUntilMs(space: AuthSpace, email: string): number {
  const row = space.find<LockoutRow>('lockout', email) ?? noRow
  return lockedForMs(row, space.nowMs) > 0 ? row.lockedUntilMs : 0
}

/** Counts one more failure and tells of it; the one that makes the count full locks. */
export function countFailure(space: AuthSpace, email: string, userId: string | undefined): void {
  const { nowMs } = space
  const before = space.find<LockoutRow>('lockout', email) ?? noRow
  const { state, locked } = afterFailure(before, space.state.auth.lockout, nowMs)
  const unreported = before.unreported + 1
  const due = locked || nowMs - before.reportedAtMs >= REPORT_INTERVAL_MS
  const row: LockoutRow = due
    ? { ...state, reportedAtMs: nowMs, unreported: 0 }
    : { ...state, reportedAtMs: before.reportedAtMs, unreported }
  if (due) space.audit('auth/login_failed', { userId, email, outcome: 'failure', count: unreported })
  if (locked) space.audit('auth/locked', { userId, email, outcome: 'failure' })
  space.put(['lockout', email], row, Math.max(row.lockedUntilMs, nowMs) + MEMORY_MS)
}

/** Forgets the failures of an e-mail whose owner has come in, and tells of those that were not told of yet. */
export function clearFailures(space: AuthSpace, email: string, userId: string): void {
  const row = space.find<LockoutRow>('lockout', email)
  if (row === undefined) return
  if (row.unreported > 0) {
    space.audit('auth/login_failed', { userId, email, outcome: 'failure', count: row.unreported })
  }
  space.remove('lockout', email)
}
