import { Type } from 'typebox'
import { refuse } from '../../../base/errors.js'
import { SessionEnded, SessionPage } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { claimsOf, unexpectedAnswer } from './answers.js'

const list: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/sessions',
  caller: 'user',
  docs: { summary: 'The sessions of the caller', answers: { 200: SessionPage } },
  async handle(request, context) {
    const { sub: userId, sid: current } = claimsOf(request)
    const answer = await context.lookUp(request, { kind: 'sessions', userId })
    if ('code' in answer || answer.kind !== 'sessions') return unexpectedAnswer(answer)
    const sessions = answer.sessions.map(({ sid, createdAtMs, lastUsedAtMs, amr }) => ({
      sid,
      created_at_ms: createdAtMs,
      last_used_at_ms: lastUsedAtMs,
      amr,
      current: sid === current,
    }))
    return json(200, { sessions })
  },
}

/** DELETE /v1/auth/sessions/:sid: revokes the tokens of a session. */
const end: AuthRouteEntry = {
  method: 'del',
  path: '/v1/auth/sessions/:sid',
  caller: 'user',
  whileFull: true,
  endsAccess: true,
  errors: ['not_found'],
  docs: {
    summary: 'End a session of the caller',
    path: {
      sid: Type.String({
        pattern: '^[0-9a-f]{32}$',
        description: 'Id of a session',
        example: '8d1f6c3a5b7e4920a1c3e5f708192a3b',
      }),
    },
    answers: { 200: SessionEnded },
  },
  async handle(request, context) {
    const sid = request.params.at(-1) ?? ''
    if (!/^[0-9a-f]{32}$/.test(sid)) return refuse('not_found', 'You have no session with this sid')
    const answer = await context.change(request, { kind: 'sessionEnd', userId: claimsOf(request).sub, sid })
    if ('code' in answer || answer.kind !== 'ended') return unexpectedAnswer(answer)
    return json(200, { ended: true, sid })
  },
}

export const sessionRoutes = [list, end]
