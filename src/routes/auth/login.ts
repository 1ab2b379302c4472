import type { Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits.js'
import { lockedRefusal } from '../../auth/lockout.js'
import type { AuthAnswer, Change } from '../../protocol/auth-messages.js'
import type { Verification } from '../../protocol/password-tasks.js'
import { LoggedIn, LoginBody } from '../../wire/auth.js'
import { reader } from '../../wire/validate.js'
import type { AuthContext, AuthRequest, AuthRoute } from '../auth-route.js'
import { issue, readEmail, secretJson, unexpectedAnswer } from './answers.js'

const loginBody = reader(LoginBody)

/** POST /v1/auth/login */
const login: AuthRoute = {
  kind: 'auth',
  method: 'post',
  path: '/v1/auth/login',
  scope: 'none',
  caller: 'anyone',
  bodyBytesMax: limits.requestBytesMax,
  docs: {
    summary: 'Sign in with e-mail and password',
    tag: 'Authentication',
    request: LoginBody,
    answers: { 200: LoggedIn },
  },
  async handle(request, context) {
    const body = loginBody.bytes(request.body)
    if ('code' in body) return body
    const read = readEmail(body.value.email)
    if ('code' in read) return read
    const { email } = read
    const guess = { email, password: body.value.password }
    const answer = await guessPassword(request, context, {
      ...guess,
      right: ({ rehashed }, passwordHash) => ({
        kind: 'loginSucceeded',
        email,
        passwordHash,
        ...(rehashed !== undefined && { rehashed }),
      }),
    })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    return secretJson(200, await issue(request, context, answer))
  },
}

/** A guess at the password of an e-mail, and the change that follows from a right one. */
export interface Guess {
  email: string
  password: string
  right(verification: Verification, passwordHash: string): Change | Promise<Change | Refusal>
}

/**
 * Compares a password within the budget of the lockout: 429 account_locked without comparing it, else a wrong one is
 * counted. Unknown e-mails and accounts without a password go the same way and take as long.
 */
export function guessPassword(
  request: AuthRequest,
  context: AuthContext,
  guess: Guess,
): Promise<AuthAnswer | Refusal> {
  const { email, password } = guess
  return context.attempt<string | undefined, AuthAnswer>(`${request.namespace.id}\0${email}`, {
    async look() {
      const state = await context.look(request, { kind: 'loginState', email })
      if ('code' in state || state.kind !== 'loginState') {
        return { kind: 'answered', answer: unexpectedAnswer(state) }
      }
      const { lockedForMs, failures, passwordHash } = state
      if (lockedForMs > 0) return { kind: 'answered', answer: lockedRefusal(lockedForMs) }
      return { kind: 'open', failures, state: passwordHash }
    },
    async verify(passwordHash) {
      const verification = await context.passwords.verify(password, passwordHash)
      if ('code' in verification) return verification
      const right = verification.matches && passwordHash !== undefined
      if (!right) return context.change(request, { kind: 'loginFailed', email })
      const change = await guess.right(verification, passwordHash)
      if ('code' in change) return change
      return context.change(request, change)
    },
  })
}

export const loginRoutes = [login]
