import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf, LinkPurpose } from '../../../src/protocol/auth-messages.js'
import { recordFailure } from '../../auth/failures.js'
import { putLink, takeLink } from '../../auth/mailed-links.js'
import { proveMailbox } from '../../auth/mailbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { countTogether, nobodysId } from '../../auth/strangers.js'
import { createUser, reachedBy, userByEmail, userById } from '../../auth/users.js'
import { unverified } from './login.js'

/**
 * Keeps and mails a link. For an e-mail that the link cannot serve the same is written, and nothing is mailed. Magic
 * links are always mailed, since their account is made when they are used. So neither answer nor time reveals who has
 * an account.
 */
export function linkSend(namespace: NamespaceState, { email, link }: ChangeOf<'linkSend'>): Changed {
  // Not the whole user: reading one takes measurably longer than finding none.
  const userId = namespace.find('email', email)
  const served = link.mailToken === undefined || serves(namespace, link.purpose, userId)
  const inRoom = putLink(namespace, { email, served }, link)
  if (link.purpose === 'magicLink') tellOfLink(namespace, { userId, email, inRoom })
  return { kind: 'done' }
}

/**
 * One record for each link of an account that is mailed. Links beyond the limit of the mailbox, or for an e-mail that
 * no account has, are counted and recorded together.
 */
function tellOfLink(
  namespace: NamespaceState,
  about: { userId: string | undefined; email: string; inRoom: boolean },
): void {
  const { inRoom, ...who } = about
  const type = 'auth/magic_link_sent'
  const alone = inRoom && who.userId !== undefined
  countTogether(namespace, { type, counted: !alone })
  if (alone) namespace.audit(type, who)
  else namespace.auditNothing(type, { ...who, userId: nobodysId })
}

function serves(namespace: NamespaceState, purpose: LinkPurpose, userId: string | undefined): boolean {
  if (purpose === 'magicLink') return true
  if (userId === undefined) return false
  return purpose === 'passwordReset' || userById(namespace, userId)?.verified === false
}

const badLink = refuse('invalid_token', 'Expected the token of a magic link that is neither used nor expired')

/** Signs in by a magic link, and makes the account if there is none. */
export function magicLinkVerify(namespace: NamespaceState, { hash }: ChangeOf<'magicLinkVerify'>): Changed {
  const link = takeLink(namespace, hash, 'magicLink')
  if (link === undefined) {
    const row = namespace.find('link', hash)
    const expired = row?.purpose === 'magicLink' ? row.email : undefined
    const user = expired === undefined ? undefined : userByEmail(namespace, expired)
    const reason = expired === undefined ? 'unknown_link' : 'expired_link'
    recordFailure(namespace, { key: expired, user }, { method: 'magic_link', reason })
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
