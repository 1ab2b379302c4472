import { Revoked } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRoute } from '../auth-route.js'
import { claimsOf, unexpectedAnswer } from './answers.js'

/** POST /v1/auth/revoke: the token that is sent is refused from now on; its session goes on. */
const revoke: AuthRoute = {
  kind: 'auth',
  method: 'post',
  path: '/v1/auth/revoke',
  scope: 'none',
  caller: 'user',
  whileFull: true,
  endsAccess: true,
  bodyBytesMax: 0,
  errors: [],
  docs: { summary: 'Revoke the token of the request', tag: 'Authentication', answers: { 200: Revoked } },
  async handle(request, context) {
    const { sub: userId, sid, jti, exp } = claimsOf(request)
    const answer = await context.change(request, {
      kind: 'revoke',
      userId,
      sid,
      jti,
      expiresAtMs: exp * 1_000,
    })
    if ('code' in answer || answer.kind !== 'ended') return unexpectedAnswer(answer)
    return json(200, { revoked: true, jti })
  },
}

export const revokeRoutes = [revoke]
