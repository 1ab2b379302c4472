import { metadataRefusal } from '../../../src/auth/user.js'
import { refuse, type Refusal } from '../../../src/base/errors.js'
import type { AuthOutcome, ChangeOf, LookupOf } from '../../../src/protocol/auth-messages.js'
import { sessionById } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { putUser, userById, withoutPassword } from '../../auth/users.js'

/** 404 for a user that does not exist. */
export const noSuchUser: Refusal = refuse('not_found', 'User not found')

/** 401 for a caller whose session has ended since its token was checked. */
export const sessionOver: Refusal = refuse('token_revoked', 'The session of this token has ended')

/** A user by its id; 404 for a deleted user whose tokens have not expired. */
export function userOf(namespace: NamespaceState, { userId }: LookupOf<'user'>): AuthOutcome['answer'] {
  const user = userById(namespace, userId)
  return user === undefined ? noSuchUser : { kind: 'user', user: withoutPassword(user) }
}

/**
 * Replaces user_metadata, which users write themselves; 401 token_revoked if the session has ended since the
 * token was checked, as after the first proof of the mailbox.
 */
export function userMetadata(namespace: NamespaceState, change: ChangeOf<'userMetadata'>): ChangeResult {
  const { userId, sid, metadata } = change
  const user = userById(namespace, userId)
  if (user === undefined) return noSuchUser
  if (sessionById(namespace, sid)?.userId !== userId) return sessionOver
  const changed = { ...user, userMetadata: metadata }
  const refusal = metadataRefusal(changed, namespace.state.auth.metadataBytesMax)
  if (refusal !== undefined) return refusal
  putUser(namespace, changed)
  namespace.audit('auth/user_metadata_updated', { userId, email: user.email })
  return { kind: 'user', user: withoutPassword(changed) }
}
