import { normalizeEmail } from '../../../auth/email.js'
import { passwordFaults } from '../../../auth/password-policy.js'
import { assert } from '../../../base/assert.js'
import { refuse, type Refusal } from '../../../base/errors.js'
import type { TokenClaims } from '../../../auth/jwt.js'
import type { AuthAnswer, ChangeOf, SignedIn } from '../../../protocol/auth-messages.js'
import type { AuthContext, AuthRequest, AuthRouteSettings, IssuedTokens } from '../auth-route.js'

/** The tokens of who has just signed in. */
export function issue(request: AuthRequest, context: AuthContext, signedIn: SignedIn): Promise<IssuedTokens> {
  return context.tokens.issue(request.namespace, signedIn)
}

/**
 * Records a sign-in that failed before its shard could decide on it.
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

/** The answer that a route did not ask for: a refusal goes on, anything else is a bug. */
export function unexpectedAnswer(answer: AuthAnswer | Refusal): Refusal {
  return 'code' in answer
    ? answer
    : refuse('internal_error', 'The namespace gave an answer that this route does not know')
}

/** An e-mail in the one form that names its mailbox; 400. */
export function readEmail(text: string): { email: string } | Refusal {
  const email = normalizeEmail(text)
  if (email !== undefined) return { email }
  const detail = 'Expected an e-mail address'
  return refuse('validation_failed', detail, {
    faults: [{ pointer: '/email', code: 'validation_failed', detail }],
  })
}

/** 422 weak_password with its reasons, for a password that is to be set. */
export function weakness(password: string, settings: AuthRouteSettings): Refusal | undefined {
  const reasons = passwordFaults(password, settings.passwordBlocklist)
  if (reasons.length === 0) return undefined
  return refuse('weak_password', reasons.join('; '), { extra: { reasons } })
}

/** The claims of the caller, whom a route of users has. */
export function claimsOf({ claims }: AuthRequest): TokenClaims {
  assert(claims !== undefined, 'a route of users is called with a token')
  return claims
}
