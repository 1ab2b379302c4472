import type { OauthStateRow } from '../../../src/auth/oauth.js'
import type { SignInReason } from '../../../src/auth/sign-in-failure.js'
import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import type { UserRow } from '../../../src/auth/user.js'
import { recordFailure } from '../../auth/failures.js'
import { hasIdentity, linkIdentity, userByIdentity, createUser, userByEmail } from '../../auth/users.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'

/** Keeps the state of a sign-in while the browser is at the provider (docs/adr/0011-oauth-sign-in.md). */
export function oauthStart(namespace: NamespaceState, { stateHash, row }: ChangeOf<'oauthStart'>): Changed {
  namespace.put(['oauth-state', stateHash], row, row.expiresAtMs)
  return { kind: 'done' }
}

const notStartedHere = refuse(
  'oauth_failed',
  'Expected a sign-in that this browser started less than ten minutes ago',
)

function faultOf(
  row: OauthStateRow,
  { provider, browserHash }: ChangeOf<'oauthReturn'>,
  nowMs: number,
): SignInReason | undefined {
  if (row.provider !== provider || row.browserHash !== browserHash) return 'other_browser'
  return row.expiresAtMs > nowMs ? undefined : 'expired_state'
}

/**
 * Removes a sign-in when the browser that started it returns: it works once. A refusal does not say what was wrong, and
 * returning with another browser's state does not end that browser's sign-in.
 */
export function oauthReturn(namespace: NamespaceState, change: ChangeOf<'oauthReturn'>): Changed {
  const { stateHash } = change
  const row = namespace.find('oauth-state', stateHash)
  const fault = row === undefined ? 'unknown_state' : faultOf(row, change, namespace.nowMs)
  if (row === undefined || fault !== undefined) {
    recordFailure(namespace, {}, { method: 'oauth', reason: fault ?? 'unknown_state' })
    // For the page that the browser is shown: its link leads back to the application.
    return () =>
      row === undefined ? notStartedHere : { ...notStartedHere, extra: { redirect_uri: row.redirectUri } }
  }
  namespace.remove('oauth-state', stateHash)
  return { kind: 'oauthReturn', redirectUri: row.redirectUri, mode: row.mode }
}

/**
 * Signs in a user of a provider: by the identity there, otherwise by the e-mail that the provider calls verified,
 * otherwise as a new account. An e-mail that changed at the provider changes nothing here. An e-mail that moved to
 * another account of the provider may belong to somebody else now: it is not linked, and a failed sign-in is recorded.
 * The owner of the mailbox can sign in by a magic link.
 */
export function oauthLogin(namespace: NamespaceState, change: ChangeOf<'oauthLogin'>): Changed {
  const known = userByIdentity(namespace, change)
  if (known !== undefined) return enter(namespace, known)
  const { email } = change
  if (email === undefined) {
    recordFailure(namespace, {}, { method: 'oauth', reason: 'email_not_verified' })
    return () => refuse('email_not_verified', 'Expected an e-mail that the provider calls verified')
  }
  const found = userByEmail(namespace, email)
  if (found !== undefined && hasIdentity(namespace, found.userId, change.provider)) {
    recordFailure(namespace, { user: found }, { method: 'oauth', reason: 'email_taken' })
    return () => refuse('email_exists', 'Expected a mailbox of no other account of the provider')
  }
  const user =
    found === undefined
      ? createUser(namespace, { email, verified: true, mailboxProven: true })
      : proveMailbox(namespace, found)
  linkIdentity(namespace, change, user.userId)
  if (found === undefined) namespace.audit('auth/register', { userId: user.userId, email })
  return enter(namespace, user)
}

function enter(namespace: NamespaceState, user: UserRow): Changed {
  const { userId, email } = user
  const signedIn = signIn(namespace, user, ['fed'])
  namespace.audit('auth/oauth_login', { userId, email, sid: signedIn.session.sid })
  return signedIn
}
