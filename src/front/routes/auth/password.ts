import { hashOneTimeToken } from '../../../auth/one-time-token.js'
import { refuse } from '../../../base/errors.js'
import {
  EmailBody,
  LinkSent,
  PasswordChangeBody,
  PasswordChanged,
  PasswordResetBody,
  PasswordWasReset,
} from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { claimsOf, signInFailed, unexpectedAnswer, weakness, sendLink } from './answers.js'
import { guessPassword } from './login.js'
import { withBody } from '../parameters.js'

const badLink = refuse(
  'invalid_token',
  'The reset token is invalid, was used or has expired: request a new one',
  { status: 400 },
)

/**
 * POST /v1/auth/password/change: a wrong current password counts as a failed login. Ends other sessions, and
 * invalidates links that were sent before.
 */
const change: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/password/change',
  caller: 'user',
  errors: ['invalid_credentials', 'account_locked', 'weak_password'],
  docs: {
    summary: 'Change the password of the caller',
    request: PasswordChangeBody,
    answers: { 200: PasswordChanged },
  },
  handle: withBody(PasswordChangeBody, async (body, request, context) => {
    const { current_password: password, new_password: newPassword, device_token: deviceToken } = body
    const weak = weakness(newPassword, context.settings)
    if (weak !== undefined) return weak
    const { email, sub: userId, sid } = claimsOf(request)
    const answer = await guessPassword(request, context, {
      email,
      password,
      deviceToken,
      async right({ passwordHash: comparedHash, device }) {
        // Hashed only now, so that nothing is hashed for a locked e-mail.
        const passwordHash = await context.passwords.hash(newPassword)
        if (typeof passwordHash !== 'string') return passwordHash
        const changed = { userId, sid, comparedHash, passwordHash }
        return { kind: 'passwordChange', ...changed, ...(device !== undefined && { device }) }
      },
    })
    return 'code' in answer || answer.kind !== 'done'
      ? unexpectedAnswer(answer)
      : json(200, { changed: true })
  }),
}

const requestReset: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/password/reset-request',
  caller: 'anyone',
  docs: { summary: 'Send a link that resets a password', request: EmailBody, answers: { 200: LinkSent } },
  handle: sendLink('passwordReset'),
}

/**
 * POST /v1/auth/password/reset: sets the password, ends every session, invalidates other links, and removes
 * passkeys on request.
 */
const reset: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/password/reset',
  caller: 'anyone',
  errors: ['invalid_token', 'weak_password'],
  docs: {
    summary: 'Set a password with the token of a reset link',
    request: PasswordResetBody,
    tokenInBody: true,
    answers: { 200: PasswordWasReset },
  },
  handle: withBody(PasswordResetBody, async (body, request, context) => {
    const weak = weakness(body.password, context.settings)
    if (weak !== undefined) return weak
    const hash = hashOneTimeToken(body.token)
    if (hash === undefined) {
      const failure = { method: 'password_reset', reason: 'unknown_link', refusal: badLink } as const
      return signInFailed(request, context, failure)
    }
    // Checked first, so that no password is hashed for a forged token.
    const link = await context.lookUp(request, { kind: 'link', hash, purpose: 'passwordReset' })
    if ('code' in link || link.kind !== 'link') return unexpectedAnswer(link)
    if (!link.usable) {
      const recorded = await context.change(request, { kind: 'passwordResetFailed', hash })
      return unexpectedAnswer(recorded)
    }
    const passwordHash = await context.passwords.hash(body.password)
    if (typeof passwordHash !== 'string') return passwordHash
    const answer = await context.change(request, {
      kind: 'passwordReset',
      hash,
      passwordHash,
      removePasskeys: body.remove_passkeys === true,
    })
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    return json(200, { reset: true, user_id: answer.user.userId, email: answer.user.email })
  }),
}

export const passwordRoutes = [change, requestReset, reset]
