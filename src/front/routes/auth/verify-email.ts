import { hashOneTimeToken } from '../../../auth/one-time-token.js'
import { refuse } from '../../../base/errors.js'
import { EmailBody, EmailVerified, LinkSent, OneTimeTokenBody } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { signInFailed, unexpectedAnswer, sendLink } from './answers.js'
import { withBody } from '../parameters.js'

const badToken = refuse(
  'invalid_token',
  'The verify token is invalid, was used or has expired: request a new one',
  { status: 400 },
)

const send: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/verify-email/send',
  caller: 'anyone',
  docs: {
    summary: 'Send a link that verifies an e-mail address',
    request: EmailBody,
    answers: { 200: LinkSent },
  },
  handle: sendLink('verifyEmail'),
}

const verify: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/verify-email',
  caller: 'anyone',
  errors: ['invalid_token'],
  docs: {
    summary: 'Verify an e-mail address with the token that was sent to it',
    request: OneTimeTokenBody,
    tokenInBody: true,
    answers: { 200: EmailVerified },
  },
  handle: withBody(OneTimeTokenBody, async (body, request, context) => {
    const hash = hashOneTimeToken(body.token)
    if (hash === undefined)
      return signInFailed(request, context, {
        method: 'verify_email',
        reason: 'unknown_link',
        refusal: badToken,
      })
    const answer = await context.change(request, { kind: 'emailVerify', hash })
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    return json(200, { verified: true, user_id: answer.user.userId, email: answer.user.email })
  }),
}

export const verifyEmailRoutes = [send, verify]
