import { hashOneTimeToken, makeOneTimeToken } from '../../../auth/one-time-token.js'
import type { AssertionCredential, RegistrationCredential } from '../../../auth/passkey.js'
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
  RelatedOrigins,
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
  'Passkeys are not configured on this server (SERVICE_WEBAUTHN_RP_ID, SERVICE_WEBAUTHN_ORIGIN)',
)
const failed = refuse('passkey_failed', 'The passkey could not be verified: start again')

const CHALLENGE_BYTES = 32

/**
 * POST /v1/auth/passkey/register-challenge: 401 reauthentication_required unless the user signed in recently,
 * because a passkey outlives the session in which it was registered.
 */
const registerChallenge: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/register-challenge',
  caller: 'user',
  errors: ['not_found', 'too_large', 'reauthentication_required', 'passkeys_not_configured'],
  docs: {
    summary: 'Start registering a passkey of the caller, who signed in within the last ten minutes',
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

const register: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/register',
  caller: 'user',
  errors: ['passkey_failed', 'passkey_exists', 'reauthentication_required', 'passkeys_not_configured'],
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
    const ceremony = await useSession(request, context, {
      token: body.value.session_token,
      ceremony: 'register',
      userId,
    })
    if ('code' in ceremony) return ceremony
    const fail = (reason: SignInReason) =>
      signInFailed(request, context, { method: 'passkey_registration', reason, refusal: failed, userId })
    const credential = registration.value(body.value.registration)
    if ('code' in credential) return fail('malformed')
    const sent = registrationOf(credential.value)
    const passkey = await context.passkeys.verifyRegistration(sent, ceremony.challenge)
    if (passkey === undefined) return fail(context.passkeys.registrationFault(sent, ceremony.challenge))
    const notify = context.settings.mailOn
    const answer = await context.change(request, { kind: 'passkeyRegister', userId, sid, passkey, notify })
    if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
    return json(200, { verified: true })
  },
}

const authenticateChallenge: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/authenticate-challenge',
  caller: 'anyone',
  errors: ['passkeys_not_configured'],
  docs: {
    summary: 'Start signing in with a passkey',
    request: PasskeyAuthenticateBody,
    requestOptional: true,
    answers: { 200: PasskeyRequest },
  },
  async handle(request, context) {
    const { passkeys } = context
    if (passkeys === undefined) return notConfigured
    const accountEmail = readAccountEmail(request.body)
    if ('code' in accountEmail) return accountEmail
    const { token, session } = newSession(context)
    const answer = await context.change(request, { kind: 'passkeyAuthentication', ...accountEmail, session })
    if ('code' in answer || answer.kind !== 'passkeyAuthentication') return unexpectedAnswer(answer)
    const options = await passkeys.requestOptions(session.challenge, answer.allowed)
    return json(200, { session_token: token, request_options: options })
  },
}

const authenticate: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/passkey/authenticate',
  caller: 'anyone',
  errors: ['passkey_failed', 'email_not_verified', 'passkeys_not_configured'],
  docs: {
    summary: 'Sign in with a passkey',
    request: PasskeyAssertionBody,
    answers: { 200: MagicLinkVerified },
  },
  async handle(request, context) {
    if (context.passkeys === undefined) return notConfigured
    const body = assertionBody.bytes(request.body)
    if ('code' in body) return body
    const credential = assertion.value(body.value.assertion)
    const sent = 'code' in credential ? undefined : assertionOf(credential.value)
    const ceremony = await useSession(request, context, {
      token: body.value.session_token,
      ceremony: 'authenticate',
      ...(sent !== undefined && { passkeyId: sent.id }),
    })
    if ('code' in ceremony) return ceremony
    const fail = (reason: SignInReason, credentialId: { passkeyId?: string }) => {
      const account = ceremony.email === undefined ? credentialId : { email: ceremony.email }
      return signInFailed(request, context, { method: 'passkey', reason, refusal: failed, ...account })
    }
    if (sent === undefined) return fail('malformed', {})
    const verified = await context.passkeys.verifyAssertion(sent, ceremony)
    if (verified === undefined || ceremony.passkey === undefined)
      return fail(context.passkeys.assertionFault(sent, ceremony), { passkeyId: sent.id })
    const { id, publicKey } = ceremony.passkey
    const login = { kind: 'passkeyLogin', passkeyId: id, publicKey, assertion: verified } as const
    const answer = await context.change(request, login)
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    const { userId, email, verified: isVerified } = answer.user
    const tokens = await issue(request, context, answer)
    return json(200, { ...tokens, user_id: userId, email, verified: isVerified })
  },
}

const list: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/passkeys',
  caller: 'user',
  docs: { summary: 'The passkeys of the caller', answers: { 200: PasskeyPage } },
  async handle(request, context) {
    const answer = await context.lookUp(request, { kind: 'passkeys', userId: claimsOf(request).sub })
    if ('code' in answer || answer.kind !== 'passkeys') return unexpectedAnswer(answer)
    const passkeys = answer.passkeys.map(({ id, createdAtMs, lastUsedAtMs }) => ({
      id,
      created_at_ms: createdAtMs,
      last_used_at_ms: lastUsedAtMs ?? null,
    }))
    return json(200, { passkeys })
  },
}

const remove: AuthRouteEntry = {
  method: 'del',
  path: '/v1/auth/passkeys/:passkey_id',
  caller: 'user',
  whileFull: true,
  errors: ['not_found'],
  docs: {
    summary: 'Delete a passkey of the caller',
    path: { passkey_id: { ...PasskeyId, example: 'F6h2Qm0bT3yUeXo4tWzJ1w' } },
    answers: { 200: PasskeyDeleted },
  },
  async handle(request, context) {
    const id = passkeyId.value(request.params.at(-1))
    if ('code' in id) return refuse('not_found', 'You have no passkey with this id')
    const { sub: userId, sid } = claimsOf(request)
    const change = { kind: 'passkeyRemove', userId, sid, passkeyId: id.value } as const
    const answer = await context.change(request, change)
    if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
    return json(200, { deleted: true, id: id.value })
  },
}

/**
 * GET /.well-known/webauthn: the pages on other domains that may use the passkeys of this one, where browsers
 * look for them if the server is reached at the domain of the passkeys (WebAuthn Level 3, 5.11.1).
 */
const relatedOrigins: AuthRouteEntry = {
  method: 'get',
  path: '/.well-known/webauthn',
  caller: 'anyone',
  errors: ['passkeys_not_configured'],
  docs: { summary: 'The origins of pages that may use the passkeys', answers: { 200: RelatedOrigins } },
  async handle(_request, { passkeys }) {
    return passkeys === undefined ? notConfigured : json(200, { origins: [...passkeys.webOrigins] })
  },
}

/* The bytes of a credential in base64url without padding: not all programs send them so. */

function registrationOf({ id, rawId, response, ...rest }: RegistrationCredential): RegistrationCredential {
  const clientDataJSON = toBase64url(response.clientDataJSON)
  const attestationObject = toBase64url(response.attestationObject)
  const bytes = { ...response, clientDataJSON, attestationObject }
  return { ...rest, id: toBase64url(id), rawId: toBase64url(rawId), response: bytes }
}

function assertionOf({ id, rawId, response, ...rest }: AssertionCredential): AssertionCredential {
  const { clientDataJSON, authenticatorData, signature, userHandle = null } = response
  const bytes = {
    clientDataJSON: toBase64url(clientDataJSON),
    authenticatorData: toBase64url(authenticatorData),
    signature: toBase64url(signature),
    userHandle: userHandle === null ? null : toBase64url(userHandle),
  }
  return { ...rest, id: toBase64url(id), rawId: toBase64url(rawId), response: bytes }
}

function toBase64url(text: string): string {
  return text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

/** A new ceremony: its token, and the session that the shard stores. */
function newSession(context: AuthContext): { token: string; session: PasskeySessionDraft } {
  const { token, hash } = makeOneTimeToken(context.random)
  const challenge = Buffer.from(context.random(CHALLENGE_BYTES)).toString('base64url')
  const expiresAtMs = context.nowMs() + limits.passkeySessionSecs * 1_000
  return { token, session: { hash, challenge, expiresAtMs } }
}

/**
 * Uses up the session of a token; 401 passkey_failed if it is unknown, used, expired or for another purpose.
 */
async function useSession(
  request: AuthRequest,
  context: AuthContext,
  { token, ...purpose }: { token: string } & Omit<ChangeOf<'passkeySessionTake'>, 'kind' | 'hash'>,
): Promise<Extract<AuthAnswer, { kind: 'passkeySession' }> | Refusal> {
  const hash = hashOneTimeToken(token)
  if (hash === undefined) {
    const { userId } = purpose
    const method = userId === undefined ? 'passkey' : 'passkey_registration'
    const failure = { method, reason: 'unknown_challenge', refusal: failed } as const
    return signInFailed(request, context, { ...failure, ...(userId !== undefined && { userId }) })
  }
  const answer = await context.change(request, { kind: 'passkeySessionTake', hash, ...purpose })
  return 'code' in answer || answer.kind !== 'passkeySession' ? unexpectedAnswer(answer) : answer
}

/** The e-mail whose passkeys are accepted; none if the body is empty or has no e-mail. */
function readAccountEmail(bytes: Uint8Array): { email?: string } | Refusal {
  if (bytes.length === 0) return {}
  const body = authenticateBody.bytes(bytes)
  if ('code' in body) return body
  return body.value.email === undefined ? {} : readEmail(body.value.email)
}

export const passkeyRoutes = [
  registerChallenge,
  register,
  authenticateChallenge,
  authenticate,
  list,
  remove,
  relatedOrigins,
]
