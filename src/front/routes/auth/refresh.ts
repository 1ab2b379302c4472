import { refuse } from '../../../base/errors.js'
import { LoggedIn, RefreshBody } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { issue, signInFailed, unexpectedAnswer } from './answers.js'
import { withBody } from '../parameters.js'

const notIssuedHere = refuse('refresh_invalid', 'The refresh token was not issued by this server')

/**
 * POST /v1/auth/refresh: returns a new token and the next refresh token. Can be repeated within a short time.
 */
const refresh: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/refresh',
  caller: 'anyone',
  errors: ['refresh_invalid', 'refresh_expired', 'refresh_reused'],
  docs: { summary: 'Exchange a refresh token', request: RefreshBody, answers: { 200: LoggedIn } },
  handle: withBody(RefreshBody, async (body, request, context) => {
    const claim = context.tokens.readRefreshToken(request.namespace, body.refresh_token)
    if (claim === undefined) {
      const failure = { method: 'refresh', reason: 'unknown_token', refusal: notIssuedHere } as const
      return signInFailed(request, context, failure)
    }
    const answer = await context.change(request, { kind: 'refresh', ...claim })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    return json(200, await issue(request, context, answer))
  }),
}

export const refreshRoutes = [refresh]
