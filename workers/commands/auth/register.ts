import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { putLink } from '../../auth/mailed-links.js'
import { consumeMailQuota, putMail } from '../../auth/outbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, ChangeResult } from '../../auth/namespace-state.js'
import { countAnonymous } from '../../auth/anonymous-events.js'
import { createUser, userByEmail } from '../../auth/users.js'

/**
 * Creates an account with a password. If verification is required, an e-mail with an account gets the same
 * answer as a new one, and as much is written, so that the time does not reveal it either
 * (docs/adr/0032-strangers-and-devices.md).
 */
export function register(namespace: NamespaceState, change: ChangeOf<'register'>): ChangeResult {
  const { email, passwordHash, verifyLink } = change
  const { requireEmailVerify } = namespace.state.auth
  const registered = userByEmail(namespace, email)
  if (registered !== undefined) {
    if (!requireEmailVerify) return refuse('email_exists', 'An account with this e-mail already exists')
    const mail = { kind: 'registrationTried', to: email, organismId: namespace.id } as const
    const isMailed = verifyLink?.mailToken !== undefined
    const withinQuota = isMailed
      ? putMail(namespace, mail)
      : consumeMailQuota(namespace, { ...mail, served: true })
    countAnonymous(namespace, { type: 'auth/register', counted: !withinQuota })
    const who = { userId: registered.userId, email, outcome: 'failure' } as const
    if (withinQuota) namespace.audit('auth/register', who)
    else namespace.auditDecoy('auth/register', who)
    return { kind: 'registered' }
  }
  const user = createUser(namespace, { email, passwordHash, verified: false, mailboxProven: false })
  if (!requireEmailVerify) {
    const signedIn = signIn(namespace, user, ['pwd'])
    namespace.audit('auth/register', { userId: user.userId, email, sid: signedIn.session.sid })
    return signedIn
  }
  namespace.audit('auth/register', { userId: user.userId, email })
  if (verifyLink !== undefined) putLink(namespace, { email, served: true }, verifyLink)
  return { kind: 'registered' }
}
