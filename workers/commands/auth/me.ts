import { metadataRefusal } from '../../../src/auth/user.js'
import { refuse, type Refusal } from '../../../src/base/errors.js'
import type { AuthOutcome, ChangeOf, LookupOf } from '../../../src/protocol/auth-messages.js'
import { sessionById } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { putUser, userById, withoutPassword } from '../../auth/users.js'

/** 404 for a user who no longer exists. */
export const noSuchUser: Refusal = refuse('not_found', 'Expected a user that exists')

/** 401 for a caller whose session has ended since its token was checked. */
export const sessionOver: Refusal = refuse('token_revoked', 'Expected a token whose session goes on')

/** One user. The user of a token can be missing only between its deletion and the expiry of its tokens. */
export function userOf(namespace: NamespaceState, { userId }: LookupOf<'user'>): AuthOutcome['answer'] {
  const user = userById(namespace, userId)
  return user === undefined ? noSuchUser : { kind: 'user', user: withoutPassword(user) }
}

/**
 * Replaces what users write themselves; 401 token_revoked when the session has ended since the token was checked, as at
 * the first proof of the mailbox.
 */
export function userMetadata(namespace: NamespaceState, change: ChangeOf<'userMetadata'>): Changed {
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
