import { hashOneTimeToken } from '../../../auth/one-time-token.js'
import { refuse } from '../../../base/errors.js'
import { EmailBody, LinkSent, MagicLinkVerified, OneTimeTokenBody } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { issue, signInFailed, unexpectedAnswer, sendLink } from './answers.js'
import { withBody } from '../parameters.js'

/** The same answer for an invalid, used or expired link, with the same text as the shard's. */
const badLink = refuse(
  'invalid_token',
  'The magic link is invalid, was used or has expired: request a new one',
)

const send: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/magic-link/send',
  caller: 'anyone',
  docs: { summary: 'Send a link that signs in', request: EmailBody, answers: { 200: LinkSent } },
  handle: sendLink('magicLink'),
}

/** POST /v1/auth/magic-link/verify: signs in, and creates the account if there is none. */
const verify: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/magic-link/verify',
  caller: 'anyone',
  errors: ['invalid_token', 'email_not_verified'],
  docs: {
    summary: 'Sign in with the token of a magic link',
    request: OneTimeTokenBody,
    answers: { 200: MagicLinkVerified },
  },
  handle: withBody(OneTimeTokenBody, async (body, request, context) => {
    const hash = hashOneTimeToken(body.token)
    if (hash === undefined)
      return signInFailed(request, context, {
        method: 'magic_link',
        reason: 'unknown_link',
        refusal: badLink,
      })
    const answer = await context.change(request, { kind: 'magicLinkVerify', hash })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    const { userId, email, verified } = answer.user
    return json(200, { ...(await issue(request, context, answer)), user_id: userId, email, verified })
  }),
}

export const magicLinkRoutes = [send, verify]
