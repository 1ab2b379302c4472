import { hashOneTimeToken } from '../../../auth/one-time-token.js'
import { refuse } from '../../../base/errors.js'
import { EmailBody, LinkSent, MagicLinkVerified, OneTimeTokenBody } from '../../../wire/auth.js'
import { reader } from '../../../wire/validate.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { issue, signInFailed, unexpectedAnswer, sendLink } from './answers.js'

const sendBody = reader(EmailBody)
const verifyBody = reader(OneTimeTokenBody)

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
  handle: (request, context) => sendLink(request, context, { purpose: 'magicLink', body: sendBody }),
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
  async handle(request, context) {
    const body = verifyBody.bytes(request.body)
    if ('code' in body) return body
    const hash = hashOneTimeToken(body.value.token)
    if (hash === undefined) {
      const failure = { method: 'magic_link', reason: 'unknown_link', refusal: badLink } as const
      return signInFailed(request, context, failure)
    }
    const answer = await context.change(request, { kind: 'magicLinkVerify', hash })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    const { userId, email, verified } = answer.user
    return json(200, { ...(await issue(request, context, answer)), user_id: userId, email, verified })
  },
}

export const magicLinkRoutes = [send, verify]
