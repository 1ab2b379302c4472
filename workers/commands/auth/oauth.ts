import type { OauthStateRow } from '../../../src/auth/oauth.js'
import type { SignInReason } from '../../../src/auth/sign-in-failure.js'
import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import type { UserRow } from '../../../src/auth/user.js'
import { recordFailure } from '../../auth/failures.js'
import { hasIdentity, linkIdentity, userByIdentity, createUser, userByEmail } from '../../auth/users.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'

/** Stores the state of a sign-in while the browser is at the provider (docs/adr/0011-oauth-sign-in.md). */
export function oauthStart(
  namespace: NamespaceState,
  { stateHash, row }: ChangeOf<'oauthStart'>,
): ChangeResult {
  namespace.put(['oauth-state', stateHash], row, row.expiresAtMs)
  return { kind: 'done' }
}

const notStartedHere = refuse(
  'oauth_failed',
  'This browser did not start the sign-in in the last ten minutes: start it again',
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
 * Removes the state of a sign-in when the browser returns; it works once. A refusal does not reveal the
 * reason, and a request with the state of another browser does not end the sign-in of that browser.
 */
export function oauthReturn(namespace: NamespaceState, change: ChangeOf<'oauthReturn'>): ChangeResult {
  const { stateHash } = change
  const row = namespace.find('oauth-state', stateHash)
  const fault = row === undefined ? 'unknown_state' : faultOf(row, change, namespace.nowMs)
  if (row === undefined || fault !== undefined) {
    recordFailure(namespace, {}, { method: 'oauth', reason: fault ?? 'unknown_state' })
    // The error page links back to the application.
    return () =>
      row === undefined ? notStartedHere : { ...notStartedHere, extra: { redirect_uri: row.redirectUri } }
  }
  namespace.remove('oauth-state', stateHash)
  return { kind: 'oauthReturn', redirectUri: row.redirectUri, mode: row.mode }
}

/**
 * Signs in a user of a provider by its identity, else by the e-mail that the provider has verified, else as a
 * new account. A changed e-mail at the provider changes nothing here. An e-mail that moved to another account
 * of the provider may have a new owner, so it is not linked and the failure is recorded; the owner can sign
 * in by a magic link.
 */
export function oauthLogin(namespace: NamespaceState, change: ChangeOf<'oauthLogin'>): ChangeResult {
  const known = userByIdentity(namespace, change)
  if (known !== undefined) return signInByProvider(namespace, known)
  const { email } = change
  if (email === undefined) {
    recordFailure(namespace, {}, { method: 'oauth', reason: 'email_not_verified' })
    return () => refuse('email_not_verified', 'The provider has not verified an e-mail of this account')
  }
  const found = userByEmail(namespace, email)
  if (found !== undefined && hasIdentity(namespace, found.userId, change.provider)) {
    recordFailure(namespace, { user: found }, { method: 'oauth', reason: 'email_taken' })
    return () =>
      refuse(
        'email_exists',
        'The e-mail is linked to another account of the provider: sign in by a magic link',
      )
  }
  const user =
    found === undefined
      ? createUser(namespace, { email, verified: true, mailboxProven: true })
      : proveMailbox(namespace, found)
  linkIdentity(namespace, change, user.userId)
  if (found === undefined) namespace.audit('auth/register', { userId: user.userId, email })
  return signInByProvider(namespace, user)
}

function signInByProvider(namespace: NamespaceState, user: UserRow): ChangeResult {
  const { userId, email } = user
  const signedIn = signIn(namespace, user, ['fed'])
  namespace.audit('auth/oauth_login', { userId, email, sid: signedIn.session.sid })
  return signedIn
}
