import { expect } from 'vitest'
import { authRoutes } from '../../../src/front/routes/auth/auth-routes.js'
import { usualPassword, type Account } from './accounts.js'
import { checkedCall } from '../http/answers.js'
import { SoftAuthenticator } from './authenticator.js'
import { authBase, type Space } from './organisms.js'
import { testRelyingParty } from './passkeys.js'
import type { TestCall, TestServer } from '../server/server.js'

/*
 * The secrets of a namespace, which must be invalid in any other namespace. A new way to sign in adds its
 * secret here, and test/routes/organisms/isolation.test.ts tries it everywhere.
 */

/** One kind of secret: how to obtain it, and which body contains it. */
export interface SecretKind {
  /** Obtains a secret of `account`, which is a user of `space`. */
  take(server: TestServer, space: Space, account: Account): Promise<string>
  /** The route of the namespace, and the body with the secret; absent if it is only sent as Bearer. */
  place?: { route: string; body(secret: string): Record<string, unknown> }
}

const linkOf =
  (route: string): SecretKind['take'] =>
  async (server, space, { email }) => {
    const { status, body } = await checkedCall(server, `POST ${authBase(space)}/${route}`, {
      body: { email },
    })
    expect([status, body.sent]).toEqual([200, false])
    return body.token
  }

/** The JSON body of a sign-in with a new passkey. */
const passkeyAssertion: SecretKind['take'] = async (server, space, { token, email }) => {
  const base = authBase(space)
  const post = async (path: string, key: string | null, body?: object) => {
    const answer = await checkedCall(server, `POST ${base}/passkey/${path}`, { key, body })
    expect(answer.status, answer.text).toBe(200)
    return answer.body
  }
  const authenticator = new SoftAuthenticator(testRelyingParty)
  const { session_token, creation_options } = await post('register-challenge', token)
  await post('register', token, { session_token, registration: authenticator.register(creation_options) })
  const begun = await post('authenticate-challenge', null, { email })
  const assertion = authenticator.assert(begun.request_options)
  return JSON.stringify({ session_token: begun.session_token, assertion })
}

/** The body of a sign-in with a passkey; other secrets replace its session token. */
function assertionBody(secret: string): Record<string, unknown> {
  return secret.startsWith('{') ? JSON.parse(secret) : { session_token: secret, assertion: {} }
}

/** All kinds of secrets by their names. */
export const secretKinds: Readonly<Record<string, SecretKind>> = {
  'access token': { take: async (_server, _space, { token }) => token },
  'refresh token': {
    take: async (_server, _space, { refreshToken }) => refreshToken,
    place: { route: 'POST refresh', body: (secret) => ({ refresh_token: secret }) },
  },
  'magic link': {
    take: linkOf('magic-link/send'),
    place: { route: 'POST magic-link/verify', body: (token) => ({ token }) },
  },
  'verify token': {
    take: linkOf('verify-email/send'),
    place: { route: 'POST verify-email', body: (token) => ({ token }) },
  },
  'reset token': {
    take: linkOf('password/reset-request'),
    place: { route: 'POST password/reset', body: (token) => ({ token, password: `${usualPassword}!` }) },
  },
  'passkey session': {
    take: passkeyAssertion,
    place: { route: 'POST passkey/authenticate', body: assertionBody },
  },
}

/** A call with a secret in a namespace. */
export interface Try {
  route: string
  call: TestCall
}

/** Calls with a secret in each body of `secretKinds`, and as Bearer. */
export function triesOf(space: Space, secret: string, account: Account): Try[] {
  const base = authBase(space)
  const inBodies = Object.values(secretKinds).flatMap(({ place }): Try[] => {
    if (place === undefined) return []
    const [method, path] = place.route.split(' ')
    return [{ route: `${method} ${base}/${path}`, call: { key: null, body: place.body(secret) } }]
  })
  return [...inBodies, ...guardedRoutes(space, account).map((route) => ({ route, call: { key: secret } }))]
}

/** All auth routes of a namespace that require a credential. */
function guardedRoutes(space: Space, { email }: Account): string[] {
  return authRoutes
    .filter(({ caller, path }) => caller !== 'anyone' && path.startsWith('/v1/auth/'))
    .map(({ method, path }) => {
      const filled = path.replace(':email', email).replaceAll(/:[a-z_]+/g, '0'.repeat(32))
      return `${method === 'del' ? 'DELETE' : method.toUpperCase()} ${authBase(space)}${filled.slice('/v1/auth'.length)}`
    })
}
