import type { DeviceClaim } from '../../../auth/device-token.js'
import type { Refusal } from '../../../base/errors.js'
import { lockedRefusal } from '../../../auth/lockout.js'
import { json } from '../answers.js'
import type { AuthAnswer, Change } from '../../../protocol/auth-messages.js'
import type { Verification } from '../../../protocol/password-tasks.js'
import { LoggedIn, LoginBody } from '../../../wire/auth.js'
import type { AuthContext, AuthRequest, AuthRouteEntry } from '../auth-route.js'
import { issue, readEmail, unexpectedAnswer } from './answers.js'
import { withBody } from '../parameters.js'

const login: AuthRouteEntry = {
  method: 'post',
  path: '/v1/auth/login',
  caller: 'anyone',
  errors: ['invalid_credentials', 'account_locked', 'email_not_verified'],
  docs: { summary: 'Sign in with e-mail and password', request: LoginBody, answers: { 200: LoggedIn } },
  handle: withBody(LoginBody, async (body, request, context) => {
    const read = readEmail(body.email)
    if ('code' in read) return read
    const { email } = read
    const { password, device_token: deviceToken } = body
    const answer = await guessPassword(request, context, {
      email,
      password,
      deviceToken,
      right: ({ passwordHash, rehashed, device }) => ({
        kind: 'loginSucceeded',
        email,
        passwordHash,
        ...(rehashed !== undefined && { rehashed }),
        ...(device !== undefined && { device }),
      }),
    })
    if ('code' in answer || answer.kind !== 'signedIn') return unexpectedAnswer(answer)
    return json(200, await issue(request, context, answer))
  }),
}

/** A password attempt for an e-mail, and the change that follows if it is right. */
export interface Guess {
  email: string
  password: string
  /** From an earlier answer; without a valid one, the attempt counts as one from an unknown device. */
  deviceToken: string | undefined
  right(found: RightPassword): Change | Promise<Change | Refusal>
}

export interface RightPassword extends Pick<Verification, 'rehashed'> {
  passwordHash: string
  /** The known device of the account that sent it. */
  device: DeviceClaim | undefined
}

/**
 * Checks a password within the attempt limit of the lockout: 429 account_locked without checking it, else a
 * wrong password is counted. Unknown e-mails and accounts without a password take the same path and time. A
 * known device of the account has its own limit and its own queue, so that attempts of unknown clients do not
 * delay it.
 */
export async function guessPassword(
  request: AuthRequest,
  context: AuthContext,
  guess: Guess,
): Promise<AuthAnswer | Refusal> {
  const { email, password } = guess
  const knownDevice = await deviceOf(request, context, guess)
  if (knownDevice !== undefined && 'code' in knownDevice) return knownDevice
  const device = knownDevice === undefined ? {} : { device: knownDevice }
  const queueKey = `${request.namespace.id}\0${email}\0${knownDevice?.deviceId ?? ''}`
  const permit = await context.enter(queueKey)
  if ('code' in permit) return permit
  try {
    for (;;) {
      const state = await context.lookUp(request, { kind: 'loginState', email, ...device })
      if ('code' in state || state.kind !== 'loginState') return unexpectedAnswer(state)
      const { lockedForMs, failures, passwordHash } = state
      if (lockedForMs > 0) return lockedRefusal(lockedForMs)
      if (!(await permit.allows(failures))) continue
      const verified = await context.passwords.verify(password, passwordHash)
      if ('code' in verified) return verified
      const { matches, rehashed } = verified
      if (!matches || passwordHash === undefined)
        return await context.change(request, { kind: 'loginFailed', email, ...device })
      const right = { passwordHash, device: knownDevice, ...(rehashed !== undefined && { rehashed }) }
      const change = await guess.right(right)
      return 'code' in change ? change : await context.change(request, change)
    }
  } finally {
    permit.end()
  }
}

/**
 * The device of a device token, if the account knows it. Looked up before the attempt gets a queue: tokens of
 * other accounts, or from before a reset, all share one queue.
 */
async function deviceOf(
  request: AuthRequest,
  context: AuthContext,
  { email, deviceToken }: Guess,
): Promise<DeviceClaim | Refusal | undefined> {
  if (deviceToken === undefined) return undefined
  const device = context.tokens.readDeviceToken(request.namespace, deviceToken)
  if (device === undefined) return undefined
  const state = await context.lookUp(request, { kind: 'loginState', email, device })
  if ('code' in state || state.kind !== 'loginState') return unexpectedAnswer(state)
  return state.device === true ? device : undefined
}

export const loginRoutes = [login]
