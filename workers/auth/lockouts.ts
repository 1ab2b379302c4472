import { type DeviceClaim, isDeviceOf } from '../../src/auth/device-token.js'
import { afterFailure, lockoutExpiryMs, lockedForMs, noFailures } from '../../src/auth/lockout.js'
import type { UserRow } from '../../src/auth/user.js'
import type { AuthRows } from '../store/tables/auth-rows.js'
import type { NamespaceState } from './namespace-state.js'
import { REPORT_INTERVAL_MS } from './failures.js'
import { countAnonymous, placeholderUserId } from './anonymous-events.js'

const noRow: AuthRows['lockout'] = { ...noFailures, reportedAtMs: 0, unreported: 0 }

export interface Guesser {
  email: string
  /** The account of the e-mail. */
  user?: UserRow | undefined
  /** The device of the account; absent for unknown clients, which share one counter. */
  deviceId?: string
}

/**
 * The guesser by the device token of the request; a client with a token of another account is an unknown
 * client.
 */
export function guesserOf(
  namespace: NamespaceState,
  request: Guesser & { device?: DeviceClaim | undefined },
): Guesser {
  const { email, user, device } = request
  const isKnown = device !== undefined && user !== undefined && isDeviceOf(device, user, namespace.nowMs)
  return { email, user, ...(isKnown && { deviceId: device.deviceId }) }
}

/** The lockout state of the guesser; e-mails with and without an account are treated alike. */
export function lockoutOf(
  namespace: NamespaceState,
  guesser: Guesser,
): { lockedForMs: number; failures: number } {
  const row = namespace.find(...fields(guesser)) ?? noRow
  return { lockedForMs: lockedForMs(row, namespace.nowMs), failures: row.failures }
}

/** The end of the lockout of unknown clients for an e-mail, Unix milliseconds; 0 if it is not locked. */
export function lockedUntilMs(namespace: NamespaceState, email: string): number {
  const row = namespace.find('lockout', email) ?? noRow
  return lockedForMs(row, namespace.nowMs) > 0 ? row.lockedUntilMs : 0
}

/** Counts and records a failure; the failure that reaches the limit locks the e-mail. */
export function countFailure(namespace: NamespaceState, guesser: Guesser): void {
  const { nowMs } = namespace
  const rowKey = fields(guesser)
  const before = namespace.find(...rowKey) ?? noRow
  const { state, locked } = afterFailure(before, namespace.state.auth.lockout, nowMs)
  const unreported = before.unreported + 1
  const due = locked || nowMs - before.reportedAtMs >= REPORT_INTERVAL_MS
  const row: AuthRows['lockout'] = due
    ? { ...state, reportedAtMs: nowMs, unreported: 0 }
    : { ...state, reportedAtMs: before.reportedAtMs, unreported }
  record(namespace, guesser, { due, locked, count: unreported })
  namespace.put(rowKey, row, lockoutExpiryMs(row, nowMs))
}

interface LoginFailure {
  /** Whether an audit record of `count` failures is due. */
  due: boolean
  locked: boolean
  count: number
}

/**
 * Records a failure. An e-mail with an account gets about one audit record per minute; e-mails without an
 * account share one record. Both cases compute and write as much.
 */
function record(
  namespace: NamespaceState,
  { email, user }: Guesser,
  { due, locked, count }: LoginFailure,
): void {
  const counted = user === undefined
  const who = { userId: user?.userId ?? placeholderUserId, email, outcome: 'failure' } as const
  const failure = { method: 'password', reason: reasonOf(user) } as const
  countAnonymous(namespace, { type: 'auth/login_failed', counted, failure })
  namespace.reportFailure({ ...failure, ...(user !== undefined && { userId: user.userId }) })
  if (due && counted) namespace.auditDecoy('auth/login_failed', { ...who, count, failure })
  else if (due) namespace.audit('auth/login_failed', { ...who, count, failure })
  if (!locked) return
  countAnonymous(namespace, { type: 'auth/locked', counted })
  if (counted) namespace.auditDecoy('auth/locked', who)
  else namespace.audit('auth/locked', who)
}

function reasonOf(user: UserRow | undefined): 'unknown_account' | 'no_password' | 'wrong_password' {
  if (user === undefined) return 'unknown_account'
  return user.passwordHash === undefined ? 'no_password' : 'wrong_password'
}

/**
 * Clears the failures of a guesser that has signed in, and records those that no audit record counts yet. A
 * device clears only its own failures, not those of unknown clients.
 */
export function clearFailures(namespace: NamespaceState, guesser: Guesser): void {
  const rowKey = fields(guesser)
  const row = namespace.find(...rowKey)
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
  namespace.remove(...rowKey)
}

/**
 * Clears the failures of all guessers of an account, and records those that no audit record counts yet.
 * @returns whether there were any failures
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

/** Removes the counters of a deleted account, of unknown clients and of its devices. */
export function dropLockouts(
  namespace: NamespaceState,
  { email, userId }: Pick<UserRow, 'email' | 'userId'>,
): void {
  namespace.remove('lockout', email)
  for (const id of namespace.ids('device-lockout', `${userId}:`)) namespace.remove('device-lockout', id)
}

/** The key of the row that counts the failures of a guesser. */
function fields({ email, user, deviceId }: Guesser): ['lockout' | 'device-lockout', string] {
  if (user === undefined || deviceId === undefined) return ['lockout', email]
  return ['device-lockout', `${user.userId}:${deviceId}`]
}
