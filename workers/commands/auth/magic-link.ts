import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf, LinkPurpose } from '../../../src/protocol/auth-messages.js'
import { recordBadLink } from '../../auth/failures.js'
import { putLink, takeLink } from '../../auth/mailed-links.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { countAnonymous, placeholderUserId } from '../../auth/anonymous-events.js'
import { createUser, reachedBy, userByEmail, userById } from '../../auth/users.js'
import { unverified } from './login.js'

/**
 * Stores and mails a link. For an e-mail that cannot use the link, as much is written but no mail is sent, so
 * that neither the answer nor its time reveals whether there is an account. Magic links are always mailed:
 * their use creates the account.
 */
export function linkSend(namespace: NamespaceState, { email, link }: ChangeOf<'linkSend'>): ChangeResult {
  // Reading a whole user would take measurably longer than finding none.
  const userId = namespace.find('email', email)
  const served = link.mailToken === undefined || serves(namespace, link.purpose, userId)
  const withinQuota = putLink(namespace, { email, served }, link)
  if (link.purpose === 'magicLink') auditLink(namespace, { userId, email, withinQuota })
  return { kind: 'done' }
}

/**
 * Writes an audit record for each link that is mailed to an account. Links over the quota of the mailbox or
 * for an e-mail without an account are counted in a shared record.
 */
function auditLink(
  namespace: NamespaceState,
  about: { userId: string | undefined; email: string; withinQuota: boolean },
): void {
  const { withinQuota, ...who } = about
  const type = 'auth/magic_link_sent'
  const hasRecord = withinQuota && who.userId !== undefined
  countAnonymous(namespace, { type, counted: !hasRecord })
  if (hasRecord) namespace.audit(type, who)
  else namespace.auditDecoy(type, { ...who, userId: placeholderUserId })
}

function serves(namespace: NamespaceState, purpose: LinkPurpose, userId: string | undefined): boolean {
  if (purpose === 'magicLink') return true
  if (userId === undefined) return false
  return purpose === 'passwordReset' || userById(namespace, userId)?.verified === false
}

const badLink = refuse(
  'invalid_token',
  'The magic link is invalid, was used or has expired: request a new one',
)

/** Signs in by a magic link and creates the account if there is none. */
export function magicLinkVerify(
  namespace: NamespaceState,
  { hash }: ChangeOf<'magicLinkVerify'>,
): ChangeResult {
  const link = takeLink(namespace, hash, 'magicLink')
  if (link === undefined) {
    recordBadLink(namespace, hash, 'magicLink')
    return () => badLink
  }
  const { email, mailed, line } = link
  const found = userByEmail(namespace, email)
  const account = found ?? createUser(namespace, { email, verified: mailed, mailboxProven: mailed })
  const known = { ...account, ...reachedBy(line, account.reachedBy) }
  const user = mailed ? proveMailbox(namespace, known) : known
  if (found === undefined) namespace.audit('auth/register', { userId: user.userId, email })
  if (namespace.state.auth.requireEmailVerify && !user.verified)
    return unverified(namespace, user, 'magic_link')
  const signedIn = signIn(namespace, user, ['otp'])
  namespace.audit('auth/magic_link_login', { userId: user.userId, email, sid: signedIn.session.sid })
  return signedIn
}
