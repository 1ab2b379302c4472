import { type SignInFailure, signInMethods } from '../../src/auth/sign-in-failure.js'
import type { UserRow } from '../../src/auth/user.js'
import type { NamespaceState } from './namespace-state.js'
import { countTogether, nobodysId } from './strangers.js'

/** One audit record stands for the failures of one account and method within this time (docs/OPERATIONS.md). */
export const REPORT_INTERVAL_MS = 60_000
/** How long failures are kept that no audit record counts yet, for the next one or the next sign-in. */
const KEPT_MS = 3_600_000

/** Whose sign-in failed. */
export interface Failing {
  /** What the caller named, an e-mail or the id of a passkey; absent where it named nothing that this server knows. */
  key?: string | undefined
  user?: Pick<UserRow, 'userId' | 'email'> | undefined
}

/**
 * Records a failed sign-in by anything but a password (workers/auth/lockouts.ts). An account has records of its own, about
 * one a minute and method; failures without an account are counted together. Whatever the caller named, as much is read and
 * written, so time does not reveal whether it has an account.
 */
export function recordFailure(
  namespace: NamespaceState,
  { key, user }: Failing,
  failure: SignInFailure,
): void {
  const { nowMs } = namespace
  const counted = user === undefined
  countTogether(namespace, { type: 'auth/login_failed', counted, failure })
  namespace.failed({ ...failure, ...(user !== undefined && { userId: user.userId }) })
  const email = user?.email ?? key
  if (email === undefined) return
  const rows = namespace.find('sign-in-failures', email) ?? {}
  const before = rows[failure.method] ?? { reportedAtMs: 0, unreported: 0 }
  const count = before.unreported + 1
  const due = nowMs - before.reportedAtMs >= REPORT_INTERVAL_MS
  const row = due ? { reportedAtMs: nowMs, unreported: 0 } : { ...before, unreported: count }
  const kept = { ...rows, [failure.method]: { ...row, reason: failure.reason } }
  namespace.put(['sign-in-failures', email], kept, nowMs + KEPT_MS)
  if (!due) return
  const who = { userId: user?.userId ?? nobodysId, email, outcome: 'failure', count, failure } as const
  if (counted) namespace.auditNothing('auth/login_failed', who)
  else namespace.audit('auth/login_failed', who)
}

/** Records the failures of an account that no audit record counts yet: it has signed in. */
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
