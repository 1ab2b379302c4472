import { Revoked } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { claimsOf, unexpectedAnswer } from './answers.js'

/** POST /v1/auth/revoke: revokes the token of the request; its session continues. */
const revoke: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/revoke',
  caller: 'user',
  whileFull: true,
  endsAccess: true,
  docs: { summary: 'Revoke the token of the request', answers: { 200: Revoked } },
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
