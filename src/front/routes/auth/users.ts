import { Type } from 'typebox'
import { ada } from '../../../wire/example-values.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { emailBytesMax, normalizeEmail } from '../../../auth/email.js'
import { limits } from '../../../base/limits/limits.js'
import {
  AppMetadataBody,
  AppMetadataUpdated,
  UserDeleted,
  UserLoggedOut,
  UserPage,
  UserSessions,
  UserUnlocked,
} from '../../../wire/auth.js'
import { Cursor } from '../../../wire/primitives.js'
import { reader } from '../../../wire/validate.js'
import { json } from '../answers.js'
import type { AuthContext, AuthRequest, AuthRouteEntry } from '../auth-route.js'
import { badCursor, decodeText, encodeCursor, faultyParameter, pageLimit } from '../parameters.js'
import type { Answer } from '../route.js'
import { unexpectedAnswer } from './answers.js'
import { shownUser } from './me.js'

const userIdPattern = '^usr_[0-9a-f]{1,64}$'
const userIdForm = new RegExp(userIdPattern)

const metadataBody = reader(AppMetadataBody)

/** GET /v1/auth/users: all users of the namespace, ordered by e-mail. */
const list: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/users',
  caller: 'admin',
  docs: {
    summary: 'List users',
    query: {
      limit: Type.Integer({ minimum: 1, maximum: limits.pageRowsMax, default: 100 }),
      cursor: Cursor,
      prefix: Type.String({ description: 'Only users whose e-mail starts with this, ignoring case' }),
      user_id: Type.String({ pattern: userIdPattern, description: 'Only the user with this id' }),
    },
    answers: { 200: UserPage },
  },
  async handle(request, context) {
    const limit = pageLimit(request)
    if (typeof limit !== 'number') return limit
    const cursor = request.query.get('cursor')
    const after = cursor === null ? '' : decodeText(cursor, 'users')
    // The cursor is used as a key of the store.
    if (after === undefined || (after !== '' && normalizeEmail(after) !== after)) return badCursor
    const prefix = emailPrefix(request.query.get('prefix') ?? '')
    if (prefix === undefined) return faultyParameter('?prefix', 'Expected the beginning of an e-mail address')
    const userId = request.query.get('user_id')
    if (userId !== null && !userIdForm.test(userId))
      return faultyParameter('?user_id', 'Expected the id of a user')
    const one = userId === null ? {} : { userId }
    const answer = await context.lookUp(request, { kind: 'users', prefix, after, limit, ...one })
    if ('code' in answer || answer.kind !== 'users') return unexpectedAnswer(answer)
    return json(200, {
      users: answer.users.map((user) => ({
        ...shownUser(user),
        email_hmac: user.emailHmac,
        locked_until_ms: user.lockedUntilMs || null,
        passkeys: user.passkeys,
        mailbox_proven: user.mailboxProven,
      })),
      total: answer.total,
      next_cursor: answer.after === undefined ? null : encodeCursor('users', [answer.after]),
    })
  },
}

/**
 * Normalizes the beginning of an e-mail address like stored addresses; the result is used as a key of the
 * store.
 */
function emailPrefix(text: string): string | undefined {
  if (text.length > emailBytesMax) return undefined
  const folded = text.normalize('NFC').toLowerCase().normalize('NFC')
  return Buffer.byteLength(folded) <= emailBytesMax && /^[^\p{C}\s]*$/u.test(folded) ? folded : undefined
}

const path = {
  email: Type.String({
    minLength: 1,
    description: 'E-mail address of a user, percent-encoded',
    example: ada.email,
  }),
}

/** GET /v1/auth/users/:email/sessions: the sessions of a user. */
const sessions: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/users/:email/sessions',
  caller: 'admin',
  errors: ['not_found'],
  docs: { summary: 'The sessions of a user', path, answers: { 200: UserSessions } },
  handle: withUser(async ({ email, request, context }) => {
    const answer = await context.lookUp(request, { kind: 'userSessions', email })
    if ('code' in answer || answer.kind !== 'userSessions') return unexpectedAnswer(answer)
    const shown = answer.sessions.map(({ sid, createdAtMs, lastUsedAtMs, amr }) => ({
      sid,
      created_at_ms: createdAtMs,
      last_used_at_ms: lastUsedAtMs,
      amr,
    }))
    return json(200, { user_id: answer.userId, email, sessions: shown })
  }),
}

/** DELETE /v1/auth/users/:email: deletes a user and revokes its tokens. */
const remove: AuthRouteEntry = {
  method: 'del',
  path: '/v1/auth/users/:email',
  caller: 'admin',
  whileFull: true,
  endsAccess: true,
  errors: ['not_found'],
  docs: { summary: 'Delete a user', path, answers: { 200: UserDeleted } },
  handle: withUser(async ({ email, request, context }) => {
    const answer = await context.change(request, { kind: 'userDelete', email })
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    return json(200, { deleted: true, user_id: answer.user.userId, email })
  }),
}

/** POST /v1/auth/users/:email/unlock: resets failed logins, so that a locked user can sign in immediately. */
const unlock: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/users/:email/unlock',
  caller: 'admin',
  errors: ['not_found'],
  docs: { summary: 'Unlock a user', path, answers: { 200: UserUnlocked } },
  handle: withUser(async ({ email, request, context }) => {
    const answer = await context.change(request, { kind: 'userUnlock', email })
    if ('code' in answer || answer.kind !== 'unlocked') return unexpectedAnswer(answer)
    return json(200, { unlocked: answer.untilMs > 0, user_id: answer.userId, email })
  }),
}

/** POST /v1/auth/users/:email/logout: ends all sessions of a user and revokes their tokens. */
const logout: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/users/:email/logout',
  caller: 'admin',
  whileFull: true,
  endsAccess: true,
  errors: ['not_found'],
  docs: { summary: 'End the sessions of a user', path, answers: { 200: UserLoggedOut } },
  handle: withUser(async ({ email, request, context }) => {
    const answer = await context.change(request, { kind: 'userLogout', email })
    if ('code' in answer || answer.kind !== 'loggedOut') return unexpectedAnswer(answer)
    return json(200, { sessions_ended: answer.sessions, user_id: answer.userId, email })
  }),
}

/**
 * PATCH /v1/auth/users/:email/app-metadata: replaces the whole object, and clears user_metadata on request.
 * Issued tokens do not change.
 */
const metadata: AuthRouteEntry = {
  method: 'patch',
  path: '/v1/auth/users/:email/app-metadata',
  caller: 'admin',
  errors: ['not_found', 'metadata_too_large'],
  docs: {
    summary: "Replace a user's app_metadata",
    path,
    request: AppMetadataBody,
    answers: { 200: AppMetadataUpdated },
  },
  handle: withUser(async ({ email, request, context }) => {
    const body = metadataBody.bytes(request.body)
    if ('code' in body) return body
    const answer = await context.change(request, {
      kind: 'appMetadata',
      email,
      metadata: body.value.metadata,
      clearUserMetadata: body.value.clear_user_metadata === true,
    })
    if ('code' in answer || answer.kind !== 'user') return unexpectedAnswer(answer)
    return json(200, { email, app_metadata: answer.user.appMetadata })
  }),
}

interface UserRequest {
  email: string
  request: AuthRequest
  context: AuthContext
}

/** Handles requests whose path names a user; 404 for an invalid e-mail address. */
function withUser(answer: (request: UserRequest) => Promise<Answer | Refusal>): AuthRouteEntry['handle'] {
  return async (request, context) => {
    const email = normalizeEmail(request.params.at(-1) ?? '')
    if (email === undefined) return refuse('not_found', 'User not found')
    return answer({ email, request, context })
  }
}

export const userRoutes = [list, sessions, remove, unlock, logout, metadata]
