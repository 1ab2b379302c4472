import { type DeviceClaim, isDeviceOf } from '../../src/auth/device-token.js'
import { afterFailure, keptUntilMs, lockedForMs, noFailures } from '../../src/auth/lockout.js'
import type { UserRow } from '../../src/auth/user.js'
import type { LockoutRow } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'
import { REPORT_INTERVAL_MS } from './failures.js'
import { countTogether, nobodysId } from './strangers.js'

const noRow: LockoutRow = { ...noFailures, reportedAtMs: 0, unreported: 0 }

/** Who guesses at the password of an e-mail: a stranger, or a device of the account. */
export interface Guesser {
  email: string
  /** The account of the e-mail. */
  user?: UserRow | undefined
  /** The device of the account; absent for strangers, who are counted together. */
  deviceId?: string
}

/**
 * Who guesses, by the device token that came with the guess. With a token of another account it counts as a stranger.
 */
export function guesserOf(
  namespace: NamespaceState,
  given: Guesser & { device?: DeviceClaim | undefined },
): Guesser {
  const { email, user, device } = given
  const known = device !== undefined && user !== undefined && isDeviceOf(device, user, namespace.nowMs)
  return { email, user, ...(known && { deviceId: device.deviceId }) }
}

/** The lockout state of the guesser; known and unknown e-mails are treated alike. */
export function lockoutOf(
  namespace: NamespaceState,
  guesser: Guesser,
): { lockedForMs: number; failures: number } {
  const row = namespace.find(...placeOf(guesser)) ?? noRow
  return { lockedForMs: lockedForMs(row, namespace.nowMs), failures: row.failures }
}

/** Until when the e-mail is locked for strangers, Unix milliseconds; 0 when it is not. */
export function lockedUntilMs(namespace: NamespaceState, email: string): number {
  const row = namespace.find('lockout', email) ?? noRow
  return lockedForMs(row, namespace.nowMs) > 0 ? row.lockedUntilMs : 0
}

/** Counts one more failure and records it; the one that reaches the limit locks. */
export function countFailure(namespace: NamespaceState, guesser: Guesser): void {
  const { nowMs } = namespace
  const place = placeOf(guesser)
  const before = namespace.find(...place) ?? noRow
  const { state, locked } = afterFailure(before, namespace.state.auth.lockout, nowMs)
  const unreported = before.unreported + 1
  const due = locked || nowMs - before.reportedAtMs >= REPORT_INTERVAL_MS
  const row: LockoutRow = due
    ? { ...state, reportedAtMs: nowMs, unreported: 0 }
    : { ...state, reportedAtMs: before.reportedAtMs, unreported }
  tell(namespace, guesser, { due, locked, count: unreported })
  namespace.put(place, row, keptUntilMs(row, nowMs))
}

/** What is recorded about a failure. */
interface LoginFailure {
  /** Whether an audit record is due, of `count` failures. */
  due: boolean
  locked: boolean
  count: number
}

/**
 * Records a failure. An e-mail with an account gets records of its own, about one a minute; failures of e-mails without
 * one are counted together. Either way as much is computed and written.
 */
function tell(
  namespace: NamespaceState,
  { email, user }: Guesser,
  { due, locked, count }: LoginFailure,
): void {
  const counted = user === undefined
  const who = { userId: user?.userId ?? nobodysId, email, outcome: 'failure' } as const
  const failure = { method: 'password', reason: reasonOf(user) } as const
  countTogether(namespace, { type: 'auth/login_failed', counted, failure })
  namespace.failed({ ...failure, ...(user !== undefined && { userId: user.userId }) })
  if (due && counted) namespace.auditNothing('auth/login_failed', { ...who, count, failure })
  else if (due) namespace.audit('auth/login_failed', { ...who, count, failure })
  if (!locked) return
  countTogether(namespace, { type: 'auth/locked', counted })
  if (counted) namespace.auditNothing('auth/locked', who)
  else namespace.audit('auth/locked', who)
}

function reasonOf(user: UserRow | undefined): 'unknown_account' | 'no_password' | 'wrong_password' {
  if (user === undefined) return 'unknown_account'
  return user.passwordHash === undefined ? 'no_password' : 'wrong_password'
}

/**
 * Clears the failures of a guesser who has signed in, and records those that no audit record counts yet. A device
 * clears only its own failures; those of strangers stay counted.
 */
export function clearFailures(namespace: NamespaceState, guesser: Guesser): void {
  const place = placeOf(guesser)
  const row = namespace.find(...place)
  if (row === undefined) return
  if (row.unreported > 0) {
    const { email, user } = guesser
    namespace.audit('auth/login_failed', {
      userId: user?.userId,
      email,
      outcome: 'failure',
      count: row.unreported,
      failure: { method: 'password', reason: 'wrong_password' },
    })
  }
  namespace.remove(...place)
}

/**
 * Clears the failures of all who guessed at the password of an account, and records those that no audit record counts
 * yet. @returns whether there were any
 */
export function unlock(namespace: NamespaceState, user: UserRow): boolean {
  const { email, userId } = user
  const devices = namespace.ids('device-lockout', `${userId}:`)
  const rows = [
    namespace.find('lockout', email),
    ...devices.map((id) => namespace.find('device-lockout', id)),
  ]
  const count = rows.reduce((sum, row) => sum + (row?.unreported ?? 0), 0)
  const failure = { method: 'password', reason: 'wrong_password' } as const
  if (count > 0) namespace.audit('auth/login_failed', { userId, email, outcome: 'failure', count, failure })
  dropLockouts(namespace, user)
  return rows.some((row) => row !== undefined)
}

/** Removes all counts of an e-mail whose account is deleted, those of strangers and of its devices. */
export function dropLockouts(
  namespace: NamespaceState,
  { email, userId }: Pick<UserRow, 'email' | 'userId'>,
): void {
  namespace.remove('lockout', email)
  for (const id of namespace.ids('device-lockout', `${userId}:`)) namespace.remove('device-lockout', id)
}

/** The row in which the failures of a guesser are counted. */
function placeOf({ email, user, deviceId }: Guesser): ['lockout' | 'device-lockout', string] {
  if (user === undefined || deviceId === undefined) return ['lockout', email]
  return ['device-lockout', `${user.userId}:${deviceId}`]
}
