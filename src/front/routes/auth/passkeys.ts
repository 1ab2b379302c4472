import { hashOneTimeToken, makeOneTimeToken } from '../../../auth/one-time-token.js'
import type { SignInReason } from '../../../auth/sign-in-failure.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { AuthAnswer, ChangeOf, PasskeySessionDraft } from '../../../protocol/auth-messages.js'
import { MagicLinkVerified } from '../../../wire/auth.js'
import {
  Assertion,
  PasskeyAssertionBody,
  PasskeyAuthenticateBody,
  PasskeyCreation,
  PasskeyDeleted,
  PasskeyId,
  PasskeyPage,
  PasskeyRegisterBody,
  PasskeyRegistered,
  PasskeyRequest,
  Registration,
} from '../../../wire/passkeys.js'
import { reader } from '../../../wire/validate.js'
import { json } from '../answers.js'
import type { AuthContext, AuthRequest, AuthRouteEntry } from '../auth-route.js'
import { claimsOf, issue, readEmail, signInFailed, unexpectedAnswer } from './answers.js'

const registerBody = reader(PasskeyRegisterBody)
const registration = reader(Registration)
const authenticateBody = reader(PasskeyAuthenticateBody)
const assertionBody = reader(PasskeyAssertionBody)
const assertion = reader(Assertion)
const passkeyId = reader(PasskeyId)

const notConfigured = refuse(
  'passkeys_not_configured',
  'Expected SERVICE_WEBAUTHN_RP_ID and SERVICE_WEBAUTHN_ORIGIN on this server',
)
const failed = refuse('passkey_failed', 'Expected a passkey that answers a challenge not used before')

const CHALLENGE_BYTES = 32

/**
 * POST /v1/auth/passkey/register-challenge: 401 reauthentication_required unless the user came in a short while ago, as a
 * passkey outlives the session by whose token it was registered.
 */
const registerChallenge: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/register-challenge',
  caller: 'user',
  errors: ['not_found', 'too_large', 'reauthentication_required', 'passkeys_not_configured'],
  docs: {
    summary: 'Begin to register a passkey of the caller, who signed in within the last ten minutes',
    answers: { 200: PasskeyCreation },
  },
  async handle(request, context) {
    const { passkeys } = context
    if (passkeys === undefined) return notConfigured
    const { token, session } = newSession(context)
    const { sub: userId, sid } = claimsOf(request)
    const answer = await context.change(request, { kind: 'passkeyRegistration', userId, sid, session })
    if ('code' in answer || answer.kind !== 'passkeyRegistration') return unexpectedAnswer(answer)
    const options = await passkeys.creationOptions(session.challenge, answer.user, answer.passkeys)
    return json(200, { session_token: token, creation_options: options })
  },
}

/** POST /v1/auth/passkey/register */
const register: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/register',
  caller: 'user',
  errors: ['passkey_failed', 'reauthentication_required', 'passkeys_not_configured'],
  docs: {
    summary: 'Register a passkey of the caller',
    request: PasskeyRegisterBody,
    answers: { 200: PasskeyRegistered },
  },
  async handle(request, context) {
    if (context.passkeys === undefined) return notConfigured
    const body = registerBody.bytes(request.body)
    if ('code' in body) return body
    const { sub: userId, sid } = claimsOf(request)
    const taken = await takeSession(request, context, {
      token: body.value.session_token,
      ceremony: 'register',
      userId,
    })
    if ('code' in taken) return taken
    const credential = registration.value(body.value.registration)
    if ('code' in credential) return failed
    const passkey = await context.passkeys.verifyRegistration(credential.value, taken.challenge)
    if (passkey === undefined) return failed
    const notify = context.settings.mailOn
    const answer = await context.change(request, { kind: 'passkeyRegister', userId, sid, passkey, notify })
    if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
    return json(200, { verified: true })
  },
}

/** POST /v1/auth/passkey/authenticate-challenge */
const authenticateChallenge: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/authenticate-challenge',
  caller: 'anyone',
  errors: ['passkeys_not_configured'],
  docs: {
    summary: 'Begin to sign in by a passkey',
    request: PasskeyAuthenticateBody,
    requestOptional: true,
    answers: { 200: PasskeyRequest },
  },
  async handle(request, context) {
    const { passkeys } = context
    if (passkeys === undefined) return notConfigured
    const named = readNamed(request.body)
    if ('code' in named) return named
    const { token, session } = newSession(context)
    const answer = await context.change(request, { kind: 'passkeyAuthentication', ...named, session })
    if ('code' in answer || answer.kind !== 'passkeyAuthentication') return unexpectedAnswer(answer)
    const options = await passkeys.requestOptions(session.challenge, answer.allowed)
    return json(200, { session_token: token, request_options: options })
  },
}

/** POST /v1/auth/passkey/authenticate */
const authenticate: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/authenticate',
  caller: 'anyone',
  errors: ['passkey_failed', 'email_not_verified', 'passkeys_not_configured'],
  docs: {
    summary: 'Sign in by a passkey',
    request: PasskeyAssertionBody,
    answers: { 200: MagicLinkVerified },
  },
  async handle(request, context) {
    if (context.passkeys === undefined) return notConfigured
    const body = assertionBody.bytes(request.body)
    if ('code' in body) return body
    const credential = assertion.value(body.value.assertion)
    const taken = await takeSession(request, context, {
      token: body.value.session_token,
      ceremony: 'authenticate',
      ...('value' in credential && { passkeyId: credential.value.id }),
    })
    if ('code' in taken) return taken
    const fail = (reason: SignInReason, named: { passkeyId?: string }) => {
      const who = taken.email === undefined ? named : { email: taken.email }
      return signInFailed(request, context, { method: 'passkey', reason, refusal: failed, ...who })
    }
    if ('code' in credential) return fail('malformed', {})
    const verified = await context.passkeys.verifyAssertion(credential.value, taken)
    if (verified === undefined || taken.passkey === undefined) {
      const reason = context.passkeys.assertionFault(credential.value, taken)
      return fail(reason, { passkeyId: credential.value.id })
    }
    const { id, publicKey } = taken.passkey
    const login = { kind: 'passkeyLogin', passkeyId: id, publicKey, assertion: verified } as const
    const answer = await context.change(request, login)
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    const { userId, email, verified: isVerified } = answer.user
    const tokens = await issue(request, context, answer)
    return json(200, { ...tokens, user_id: userId, email, verified: isVerified })
  },
}

/** GET /v1/auth/passkeys */
const list: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/passkeys',
  caller: 'user',
  docs: { summary: 'The passkeys of the caller', answers: { 200: PasskeyPage } },
  async handle(request, context) {
    const answer = await context.look(request, { kind: 'passkeys', userId: claimsOf(request).sub })
    if ('code' in answer || answer.kind !== 'passkeys') return unexpectedAnswer(answer)
    const passkeys = answer.passkeys.map(({ id, createdAtMs, lastUsedAtMs }) => ({
      id,
      created_at_ms: createdAtMs,
      last_used_at_ms: lastUsedAtMs ?? null,
    }))
    return json(200, { passkeys })
  },
}

/** DELETE /v1/auth/passkeys/:passkey_id */
const remove: AuthRouteEntry = {
  method: 'del',
  path: '/v1/auth/passkeys/:passkey_id',
  caller: 'user',
  whileFull: true,
  errors: ['not_found'],
  docs: { summary: 'Delete a passkey of the caller', answers: { 200: PasskeyDeleted } },
  async handle(request, context) {
    const id = passkeyId.value(request.params.at(-1))
    if ('code' in id) return refuse('not_found', 'Expected the id of a passkey of yours')
    const { sub: userId, sid } = claimsOf(request)
    const change = { kind: 'passkeyRemove', userId, sid, passkeyId: id.value } as const
    const answer = await context.change(request, change)
    if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
    return json(200, { deleted: true, id: id.value })
  },
}

/** A new ceremony: the token that names it, and what the shard keeps of it. */
function newSession(context: AuthContext): { token: string; session: PasskeySessionDraft } {
  const { token, hash } = makeOneTimeToken(context.random)
  const challenge = Buffer.from(context.random(CHALLENGE_BYTES)).toString('base64url')
  const expiresAtMs = context.nowMs() + limits.passkeySessionSecs * 1_000
  return { token, session: { hash, challenge, expiresAtMs } }
}

/** Uses the session of a token up; 401 passkey_failed for one that is unknown, used, expired or for something else. */
async function takeSession(
  request: AuthRequest,
  context: AuthContext,
  { token, ...about }: { token: string } & Omit<ChangeOf<'passkeySessionTake'>, 'kind' | 'hash'>,
): Promise<Extract<AuthAnswer, { kind: 'passkeySession' }> | Refusal> {
  const hash = hashOneTimeToken(token)
  if (hash === undefined) {
    if (about.ceremony === 'register') return failed
    const failure = { method: 'passkey', reason: 'unknown_challenge', refusal: failed } as const
    return signInFailed(request, context, failure)
  }
  const answer = await context.change(request, { kind: 'passkeySessionTake', hash, ...about })
  return 'code' in answer || answer.kind !== 'passkeySession' ? unexpectedAnswer(answer) : answer
}

/** The e-mail whose passkeys may serve; none where the body is empty or names none. */
function readNamed(bytes: Uint8Array): { email?: string } | Refusal {
  if (bytes.length === 0) return {}
  const body = authenticateBody.bytes(bytes)
  if ('code' in body) return body
  return body.value.email === undefined ? {} : readEmail(body.value.email)
}

export const passkeyRoutes = [registerChallenge, register, authenticateChallenge, authenticate, list, remove]
