import { refuse } from '../../../src/base/errors.js'
import type { ChangeOf } from '../../../src/protocol/auth-messages.js'
import { putLink } from '../../auth/links.js'
import { takeMailRoom } from '../../auth/mail-rooms.js'
import { putMail } from '../../auth/outbox.js'
import { signIn } from '../../auth/sessions.js'
import type { AuthSpace, Changed } from '../../auth/namespace-state.js'
import { countTogether } from '../../auth/strangers.js'
import { createUser, userByEmail } from '../../auth/users.js'

/**
 * Makes an account with a password. While verification is required, a taken e-mail is answered just as a new one is,
 * and as much is written, so that time does not tell either (contract.md 6.4).
 */
export function register(space: AuthSpace, change: ChangeOf<'register'>): Changed {
  const { email, passwordHash, verifyLink } = change
  const { requireEmailVerify } = space.state.auth
  const owner = userByEmail(space, email)
  if (owner !== undefined) {
    if (!requireEmailVerify) return refuse('email_exists', 'Expected an e-mail that no account has')
    const mail = { kind: 'registrationTried', to: email, organismId: space.namespace } as const
    const mailsOut = verifyLink?.mailToken !== undefined
    const inRoom = mailsOut ? putMail(space, mail) : takeMailRoom(space, { ...mail, served: true })
    countTogether(space, { type: 'auth/register', counted: !inRoom })
    if (inRoom) space.audit('auth/register', { userId: owner.userId, email, outcome: 'failure' })
    return { kind: 'registered' }
  }
  const user = createUser(space, { email, passwordHash, verified: false, mailboxProven: false })
  if (!requireEmailVerify) {
    const signedIn = signIn(space, user, ['pwd'])
    space.audit('auth/register', { userId: user.userId, email, sid: signedIn.session.sid })
    return signedIn
  }
  space.audit('auth/register', { userId: user.userId, email })
  if (verifyLink !== undefined) putLink(space, { email, served: true }, verifyLink)
  return { kind: 'registered' }
}
