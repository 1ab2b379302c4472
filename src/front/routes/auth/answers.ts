import { normalizeEmail } from '../../../auth/email.js'
import { passwordFaults } from '../../../auth/password-policy.js'
import { assert } from '../../../base/assert.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import { isLoopback } from '../../../base/loopback.js'
import type { TokenClaims } from '../../../auth/jwt.js'
import type {
  AuthAnswer,
  ChangeOf,
  SignedIn,
  LinkDraft,
  LinkPurpose,
} from '../../../protocol/auth-messages.js'
import type {
  AuthContext,
  AuthRequest,
  AuthRouteEntry,
  AuthRouteSettings,
  IssuedTokens,
} from '../auth-route.js'
import { makeOneTimeToken } from '../../../auth/one-time-token.js'
import { limits } from '../../../base/limits/limits.js'
import { EmailBody } from '../../../wire/auth.js'
import { json } from '../answers.js'
import { withBody } from '../parameters.js'

/** Issues the tokens of a user who has just signed in. */
export function issue(request: AuthRequest, context: AuthContext, signedIn: SignedIn): Promise<IssuedTokens> {
  return context.tokens.issue(request.namespace, signedIn)
}

/**
 * Records a sign-in that failed before it reached its shard.
 * @returns the refusal for the caller, or why it could not be recorded
 */
export async function signInFailed(
  request: AuthRequest,
  context: AuthContext,
  { refusal, ...failure }: Omit<ChangeOf<'signInFailed'>, 'kind'> & { refusal: Refusal },
): Promise<Refusal> {
  const answer = await context.change(request, { kind: 'signInFailed', ...failure })
  return 'code' in answer ? answer : refusal
}

/** Handles an unexpected answer: a refusal is returned, anything else is a bug. */
export function unexpectedAnswer(answer: AuthAnswer | Refusal): Refusal {
  return 'code' in answer
    ? answer
    : refuse('internal_error', 'The namespace returned an answer that this route does not expect')
}

/** Normalizes an e-mail address; 400 if it is invalid. */
export function readEmail(text: string): { email: string } | Refusal {
  const email = normalizeEmail(text)
  if (email !== undefined) return { email }
  const detail = 'Expected an e-mail address'
  return refuse('validation_failed', detail, {
    faults: [{ pointer: '/email', code: 'validation_failed', detail }],
  })
}

/** 422 weak_password with its reasons, for a new password. */
export function weakness(password: string, settings: AuthRouteSettings): Refusal | undefined {
  const reasons = passwordFaults(password, settings.passwordBlocklist)
  if (reasons.length === 0) return undefined
  return refuse('weak_password', reasons.join('; '), { extra: { reasons } })
}

/** The claims of the caller's token, on routes that require a user. */
export function claimsOf({ claims }: AuthRequest): TokenClaims {
  assert(claims !== undefined, 'routes that require a user are called with a token')
  return claims
}

/** Creates a link that is valid once: the part that the shard stores, and its token. */
export function linkDraft(context: AuthContext, purpose: LinkPurpose): { draft: LinkDraft; token: string } {
  const { token, hash } = makeOneTimeToken(context.random)
  const expiresAtMs = context.nowMs() + lifetimeSecs(context, purpose) * 1_000
  const { mailOn } = context.settings
  return { token, draft: { purpose, hash, expiresAtMs, ...(mailOn && { mailToken: token }) } }
}

function lifetimeSecs(context: AuthContext, purpose: LinkPurpose): number {
  if (purpose === 'magicLink') return context.settings.magicLinkExpirySecs
  return purpose === 'verifyEmail' ? limits.verifyLinkSecs : limits.resetLinkSecs
}

/**
 * Sends a link to the e-mail in the body; the answer does not depend on whether an account exists. While mail
 * is disabled, the answer to the root key contains the token. If the server answers links, an answer to a
 * request of this machine contains it, except for a password reset (docs/SIGN-IN.md).
 */
export function sendLink(purpose: LinkPurpose): AuthRouteEntry['handle'] {
  return withBody(EmailBody, async (body, request, context) => {
    const address = readEmail(body.email)
    if ('code' in address) return address
    const { mailOn, answersLinks } = context.settings
    // Not for every key with admin:*: a key that is limited to agents could sign in as any user.
    const isRoot = request.principal.id === 'root'
    const isAnswered = answersLinks !== undefined && purpose !== 'passwordReset'
    const showsToken = !mailOn && (isRoot || (isAnswered && isOfThisMachine(request, answersLinks)))
    const { draft, token } = linkDraft(context, purpose)
    const answer = await context.change(request, { kind: 'linkSend', email: address.email, link: draft })
    if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
    return json(200, { sent: mailOn, ...(showsToken && { token }) })
  })
}

/**
 * Whether a program on this machine, and not a proxy or a page of another origin, sent a request: a proxy
 * passes on requests of other machines, and a name of another site can resolve to this machine (DNS
 * rebinding). Without the headers of a proxy, the address that is counted is that of the connection.
 */
function isOfThisMachine({ origin: { ip }, headers }: AuthRequest, scheme: 'http' | 'https'): boolean {
  const { host, origin, fetchSite, isForwarded } = headers
  const name = host.toLowerCase().replace(/:\d*$/, '')
  const isOwnPage = origin === '' || origin === `${scheme}://${host.toLowerCase()}`
  const isOwnSite = fetchSite === '' || fetchSite === 'same-origin' || fetchSite === 'none'
  return isLoopback(ip) && !isForwarded && isLoopback(name) && isOwnPage && isOwnSite
}
