import type { LinkDraft } from '../../../protocol/auth-messages.js'
import { Registered, RegisterBody } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthContext, AuthRouteEntry } from '../auth-route.js'
import { issue, readEmail, unexpectedAnswer, weakness, linkDraft } from './answers.js'
import { withBody } from '../parameters.js'

/**
 * POST /v1/auth/register. If verification is required, the answer does not reveal whether the e-mail was
 * taken (docs/adr/0032-strangers-and-devices.md).
 */
const register: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/register',
  caller: 'anyone',
  errors: ['email_exists', 'weak_password'],
  docs: { summary: 'Register with e-mail and password', request: RegisterBody, answers: { 201: Registered } },
  handle: withBody(RegisterBody, async (body, request, context) => {
    const read = readEmail(body.email)
    if ('code' in read) return read
    const { email } = read
    const weak = weakness(body.password, context.settings)
    if (weak !== undefined) return weak
    // Hashed in any case, so that a taken e-mail takes as long as a free one.
    const passwordHash = await context.passwords.hash(body.password)
    if (typeof passwordHash !== 'string') return passwordHash
    const answer = await context.change(request, {
      kind: 'register',
      email,
      passwordHash,
      ...(context.settings.requireEmailVerify && { verifyLink: verifyLink(context) }),
    })
    if ('kind' in answer && answer.kind === 'registered')
      return json(201, { user_id: null, email, ...noTokens })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    // The device token is issued with the first refresh or login.
    const { device_token: _deviceToken, ...tokens } = await issue(request, context, answer)
    return json(201, { user_id: answer.user.userId, email, ...tokens })
  }),
}

const noTokens = { token: null, refresh_token: null, token_type: 'Bearer', expires_in: null }

/** The token is only sent in the mail; without mail, the owner requests another link. */
function verifyLink(context: AuthContext): LinkDraft {
  return linkDraft(context, 'verifyEmail').draft
}

export const registerRoutes = [register]
