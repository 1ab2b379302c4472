import type { AuthUser } from '../../../protocol/auth-messages.js'
import { Me, UserMetadataBody, UserMetadataUpdated } from '../../../wire/auth.js'
import { json } from '../answers.js'
import type { AuthRouteEntry } from '../auth-route.js'
import { claimsOf, unexpectedAnswer } from './answers.js'
import { withBody } from '../parameters.js'

/** GET /v1/auth/me: the user as stored now; the token may be older. */
const me: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/me',
  caller: 'user',
  errors: ['not_found'],
  docs: { summary: 'The user of the token', answers: { 200: Me } },
  async handle(request, context) {
    const answer = await context.lookUp(request, { kind: 'user', userId: claimsOf(request).sub })
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    return json(200, shownUser(answer.user))
  },
}

/** PATCH /v1/auth/me/user-metadata: replaces the whole object. */
const metadata: AuthRouteEntry = {
  method: 'patch',
  path: '/v1/auth/me/user-metadata',
  caller: 'user',
  errors: ['not_found', 'metadata_too_large'],
  docs: {
    summary: "Replace the caller's user_metadata",
    request: UserMetadataBody,
    answers: { 200: UserMetadataUpdated },
  },
  handle: withBody(UserMetadataBody, async (body, request, context) => {
    const { sub: userId, sid } = claimsOf(request)
    const change = { kind: 'userMetadata', userId, sid, metadata: body.metadata } as const
    const answer = await context.change(request, change)
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    const { email, userMetadata } = answer.user
    return json(200, { email, user_metadata: userMetadata })
  }),
}

export function shownUser(user: AuthUser): Me {
  return {
    user_id: user.userId,
    email: user.email,
    verified: user.verified,
    app_metadata: user.appMetadata,
    user_metadata: user.userMetadata,
    created_at_ms: user.createdAtMs,
    last_login_at_ms: user.lastLoginAtMs ?? null,
  }
}

export const meRoutes = [me, metadata]
