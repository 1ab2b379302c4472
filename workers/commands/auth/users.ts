import { metadataRefusal, type UserRow } from '../../../src/auth/user.js'
import type { Refusal } from '../../../src/base/errors.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { AuthAnswer, ChangeOf, ListedUser, LookupOf } from '../../../src/protocol/auth-messages.js'
import { dropIdentities, putUser, userByEmail, userById, withoutPassword } from '../../auth/users.js'
import { dropLinks } from '../../auth/mailed-links.js'
import { dropLockouts, lockedUntilMs, unlock } from '../../auth/lockouts.js'
import { countPasskeys, dropPasskeys } from '../../auth/passkeys.js'
import { endSessions, issuedTokensEndAtMs, sessionsOf } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { noSuchUser } from './me.js'

/**
 * A page of the users of a namespace by e-mail, or the one with an id; it ends early at `scannedRowBytesMax` bytes.
 */
export function userList(
  namespace: NamespaceState,
  { prefix, after, limit, userId }: LookupOf<'users'>,
): AuthAnswer {
  const emails =
    userId === undefined
      ? namespace.ids('email', prefix, { after, limit: limit + 1 })
      : emailsOf(userById(namespace, userId)).filter((email) => email.startsWith(prefix) && email > after)
  const users: ListedUser[] = []
  let shown = 0
  let bytes = 0
  for (const email of emails.slice(0, limit)) {
    if (bytes >= limits.scannedRowBytesMax) break
    shown++
    const row = namespace.state.store.setAside.unlessInvalid(() => listedUser(namespace, email))
    if (row === undefined) continue
    users.push(row)
    bytes += JSON.stringify(row).length
  }
  const last = emails.length > shown ? emails[shown - 1] : undefined
  return {
    kind: 'users',
    users,
    total: userId === undefined ? countOf(namespace, prefix) : emails.length,
    ...(last !== undefined && { after: last }),
  }
}

function countOf(namespace: NamespaceState, prefix: string): number {
  return prefix === '' ? namespace.total('email') : namespace.countSome('email', prefix)
}

function listedUser(namespace: NamespaceState, email: string): ListedUser | undefined {
  const user = userByEmail(namespace, email)
  return (
    user && {
      ...withoutPassword(user),
      lockedUntilMs: lockedUntilMs(namespace, user.email),
      emailHmac: namespace.emailHmac(user.email),
      passkeys: countPasskeys(namespace, user.userId),
    }
  )
}

function emailsOf(user: UserRow | undefined): string[] {
  return user === undefined ? [] : [user.email]
}

/** The sessions of a user, newest first; 404. */
export function userSessionList(
  namespace: NamespaceState,
  { email }: LookupOf<'userSessions'>,
): AuthAnswer | Refusal {
  const user = userByEmail(namespace, email)
  if (user === undefined) return noSuchUser
  const { userId } = user
  const sessions = sessionsOf(namespace, userId).toSorted((one, other) => other.createdAtMs - one.createdAtMs)
  return { kind: 'userSessions', userId, sessions }
}

/**
 * Replaces app_metadata, which only the root key writes. It can also empty user_metadata, because a user that
 * fills the shared limit could otherwise not be demoted. Issued tokens keep their claims.
 */
export function appMetadata(namespace: NamespaceState, change: ChangeOf<'appMetadata'>): ChangeResult {
  const { email, metadata, clearUserMetadata = false } = change
  const user = userByEmail(namespace, email)
  if (user === undefined) return noSuchUser
  const { metadataBy: _before, ...rest } = user
  const by = namespace.line === undefined ? {} : { metadataBy: namespace.line }
  const changed = { ...rest, appMetadata: metadata, ...by, ...(clearUserMetadata && { userMetadata: {} }) }
  const refusal = metadataRefusal(changed, namespace.state.auth.metadataBytesMax)
  if (refusal?.code === 'metadata_too_large' && !clearUserMetadata)
    return { ...refusal, detail: `${refusal.detail}; "clear_user_metadata": true empties user_metadata` }
  if (refusal !== undefined) return refusal
  putUser(namespace, changed)
  namespace.audit('auth/app_metadata_updated', { userId: user.userId, email })
  if (clearUserMetadata) namespace.audit('auth/user_metadata_updated', { userId: user.userId, email })
  return { kind: 'user', user: withoutPassword(changed) }
}

/** Clears the failed logins of a user, so that a locked user can sign in again; audited if there were any. */
export function userUnlock(namespace: NamespaceState, { email }: ChangeOf<'userUnlock'>): ChangeResult {
  const user = userByEmail(namespace, email)
  if (user === undefined) return noSuchUser
  const { userId } = user
  const untilMs = lockedUntilMs(namespace, email)
  if (unlock(namespace, user)) namespace.audit('auth/unlocked', { userId, email })
  return { kind: 'unlocked', userId, untilMs }
}

/** Ends all sessions of a user and revokes their tokens; audited if there were any. */
export function userLogout(namespace: NamespaceState, { email }: ChangeOf<'userLogout'>): ChangeResult {
  const user = userByEmail(namespace, email)
  if (user === undefined) return noSuchUser
  const { userId } = user
  const sessions = endSessions(namespace, userId)
  if (sessions > 0) namespace.audit('auth/sessions_ended', { userId, email, count: sessions })
  return { kind: 'loggedOut', userId, sessions }
}

/** Removes a user and all its rows; the audit record is the tombstone. */
export function userDelete(namespace: NamespaceState, { email }: ChangeOf<'userDelete'>): ChangeResult {
  const user = userByEmail(namespace, email)
  if (user === undefined) return noSuchUser
  const { userId } = user
  endSessions(namespace, userId)
  dropLinks(namespace, email)
  dropIdentities(namespace, userId)
  dropPasskeys(namespace, userId)
  dropLockouts(namespace, user)
  namespace.remove('sign-in-failures', user.email)
  namespace.remove('email', email)
  namespace.remove('user', userId)
  namespace.revoke(userId, { what: 'sub', id: userId, untilMs: issuedTokensEndAtMs(namespace) })
  namespace.audit('auth/user_deleted', { userId, email })
  return { kind: 'user', user: withoutPassword(user) }
}
