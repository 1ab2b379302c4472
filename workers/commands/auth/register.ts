import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { putLink } from '../../auth/mailed-links.js'
import { consumeMailQuota, putMail } from '../../auth/outbox.js'
import { signIn } from '../../auth/sessions.js'
import type { NamespaceState, Changed } from '../../auth/namespace-state.js'
import { countTogether } from '../../auth/strangers.js'
import { createUser, userByEmail } from '../../auth/users.js'

/**
 * Makes an account with a password. While verification is required, a taken e-mail is answered as a new one is, and as
 * much is written, so that time does not reveal it either (docs/adr/0032-strangers-and-devices.md).
 */
export function register(namespace: NamespaceState, change: ChangeOf<'register'>): Changed {
  const { email, passwordHash, verifyLink } = change
  const { requireEmailVerify } = namespace.state.auth
  const owner = userByEmail(namespace, email)
  if (owner !== undefined) {
    if (!requireEmailVerify) return refuse('email_exists', 'Expected an e-mail that no account has')
    const mail = { kind: 'registrationTried', to: email, organismId: namespace.id } as const
    const mailsOut = verifyLink?.mailToken !== undefined
    const inRoom = mailsOut
      ? putMail(namespace, mail)
      : consumeMailQuota(namespace, { ...mail, served: true })
    countTogether(namespace, { type: 'auth/register', counted: !inRoom })
    const who = { userId: owner.userId, email, outcome: 'failure' } as const
    if (inRoom) namespace.audit('auth/register', who)
    else namespace.auditNothing('auth/register', who)
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
