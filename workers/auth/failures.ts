import { type SignInFailure, type SignInMethod, signInMethods } from '../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../src/auth/user.js'
import type { LinkPurpose } from '../../src/protocol/auth-messages.js'
import type { NamespaceState } from './namespace-state.js'
import { countAnonymous, placeholderUserId } from './anonymous-events.js'
import { userByEmail } from './users.js'

/** One audit record counts the failures of an account and method within this time (docs/OPERATIONS.md). */
export const REPORT_INTERVAL_MS = 60_000
/**
 * How long failures that no audit record counts yet are stored, for the next audit record or the next
 * sign-in.
 */
const KEPT_MS = 3_600_000

export interface FailedSignIn {
  /** The e-mail or the id of a passkey that the client sent; absent if it sent neither. */
  key?: string | undefined
  user?: Pick<UserRow, 'userId' | 'email'> | undefined
}

/**
 * Records a failed sign-in by any method except a password (workers/auth/lockouts.ts). An account gets about
 * one audit record per minute and method; failures without an account share one record. Both cases read and
 * write as much, so that the response time does not reveal whether there is an account.
 */
export function recordFailure(
  namespace: NamespaceState,
  { key, user }: FailedSignIn,
  failure: SignInFailure,
): void {
  const { nowMs } = namespace
  const counted = user === undefined
  countAnonymous(namespace, { type: 'auth/login_failed', counted, failure })
  namespace.reportFailure({ ...failure, ...(user !== undefined && { userId: user.userId }) })
  const email = user?.email ?? key
  if (email === undefined) return
  const rows = namespace.find('sign-in-failures', email) ?? {}
  const before = rows[failure.method] ?? { reportedAtMs: 0, unreported: 0 }
  const count = before.unreported + 1
  const due = nowMs - before.reportedAtMs >= REPORT_INTERVAL_MS
  const row = due ? { reportedAtMs: nowMs, unreported: 0 } : { ...before, unreported: count }
  const newRows = { ...rows, [failure.method]: { ...row, reason: failure.reason } }
  namespace.put(['sign-in-failures', email], newRows, nowMs + KEPT_MS)
  if (!due) return
  const who = {
    userId: user?.userId ?? placeholderUserId,
    email,
    outcome: 'failure',
    count,
    failure,
  } as const
  if (counted) namespace.auditDecoy('auth/login_failed', who)
  else namespace.audit('auth/login_failed', who)
}

const linkMethods = {
  magicLink: 'magic_link',
  passwordReset: 'password_reset',
  verifyEmail: 'verify_email',
} as const satisfies Record<LinkPurpose, SignInMethod>

/** Records the use of a link that cannot be used; with its account if it has expired and is still stored. */
export function recordBadLink(namespace: NamespaceState, hash: string, purpose: LinkPurpose): void {
  const row = namespace.find('link', hash)
  const expired = row?.purpose === purpose ? row.email : undefined
  const user = expired === undefined ? undefined : userByEmail(namespace, expired)
  const reason = expired === undefined ? 'unknown_link' : 'expired_link'
  recordFailure(namespace, { key: expired, user }, { method: linkMethods[purpose], reason })
}

/** Records those failures of an account that no audit record counts yet, after a successful sign-in. */
export function clearSignInFailures(namespace: NamespaceState, { userId, email }: UserRow): void {
  const rows = namespace.find('sign-in-failures', email)
  if (rows === undefined) return
  for (const method of signInMethods) {
    const { unreported: count = 0, reason } = rows[method] ?? {}
    if (count === 0 || reason === undefined) continue
    const failure = { method, reason }
    namespace.audit('auth/login_failed', { userId, email, outcome: 'failure', count, failure })
  }
  namespace.remove('sign-in-failures', email)
}
