import { Type } from 'typebox'
import { LoggedOut } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { faultyParameter } from '../parameters.js'
import { claimsOf, unexpectedAnswer } from './answers.js'

const logout: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/logout',
  caller: 'user',
  whileFull: true,
  endsAccess: true,
  docs: {
    summary: 'End this session, the others of the caller, or all of them',
    query: { scope: Type.Enum(['local', 'others', 'global'], { default: 'local' }) },
    answers: { 200: LoggedOut },
  },
  async handle(request, context) {
    const scope = request.query.get('scope') ?? 'local'
    if (scope !== 'local' && scope !== 'others' && scope !== 'global') {
      return faultyParameter('?scope', 'Expected local, others or global')
    }
    const { sub: userId, sid } = claimsOf(request)
    const answer = await context.change(request, { kind: 'logout', userId, sid, scope })
    if ('code' in answer || answer.kind !== 'ended') return unexpectedAnswer(answer)
    return json(200, { logged_out: true, sessions: answer.sessions })
  },
}

export const logoutRoutes = [logout]
