import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import {
  type Me,
  NetworkError,
  NotFoundError,
  type Registered,
  ServiceClient,
  type ServiceClientOptions,
  type UserPage,
} from '../../src/client/index.js'
import { alice } from './auth-script.js'
import {
  type Answer,
  type ScriptedServer,
  answerJson,
  answerProblem,
  cutOff,
  startScriptedServer,
} from './scripted-server.js'

let server: ScriptedServer | undefined

afterEach(async () => {
  await server?.stop()
  server = undefined
})

const session = { token: 'jwt-1', refresh_token: 'refresh-1' }
const pair = { ...session, token_type: 'Bearer', expires_in: 3_600 }

async function clientOf(answers: Answer[], options: Partial<ServiceClientOptions> = {}) {
  server = await startScriptedServer(...answers)
  let clockMs = 0
  const pause = async (delayMs: number) => void (clockMs += delayMs)
  const timing = { pause, random: () => 0, nowMs: () => clockMs, monotonicMs: () => 0 }
  const client = new ServiceClient({ url: server.url, apiKey: 'key-1', timing, ...options })
  return { client, auth: client.auth, received: server.received }
}

type Auth = ServiceClient['auth']

/** Each call of the auth client, with the request that it sends. */
const calls: [name: string, call: (auth: Auth) => Promise<unknown>, request: string, body?: object][] = [
  ['register', (auth) => auth.register(alice), 'POST /register -', alice],
  ['login', (auth) => auth.login(alice), 'POST /login -', alice],
  [
    'magicLink.send',
    (auth) => auth.magicLink.send('a@b.c'),
    'POST /magic-link/send key-1',
    { email: 'a@b.c' },
  ],
  ['magicLink.verify', (auth) => auth.magicLink.verify('t'), 'POST /magic-link/verify -', { token: 't' }],
  ['verifyEmail', (auth) => auth.verifyEmail('t'), 'POST /verify-email -', { token: 't' }],
  [
    'sendVerifyEmail',
    (auth) => auth.sendVerifyEmail('a@b.c'),
    'POST /verify-email/send key-1',
    { email: 'a@b.c' },
  ],
  ['refresh', (auth) => auth.refresh(), 'POST /refresh -', { refresh_token: 'refresh-1' }],
  ['logout', (auth) => auth.logout(), 'POST /logout jwt-1'],
  ['logout of others', (auth) => auth.logout({ scope: 'others' }), 'POST /logout?scope=others jwt-1'],
  ['revoke', (auth) => auth.revoke(), 'POST /revoke jwt-1'],
  ['status', (auth) => auth.status(), 'GET /status -'],
  ['me', (auth) => auth.me(), 'GET /me jwt-1'],
  [
    'updateUserMetadata',
    (auth) => auth.updateUserMetadata({ name: 'A' }),
    'PATCH /me/user-metadata jwt-1',
    { metadata: { name: 'A' } },
  ],
  [
    'changePassword',
    (auth) => auth.changePassword({ current_password: 'a', new_password: 'b' }),
    'POST /password/change jwt-1',
    { current_password: 'a', new_password: 'b' },
  ],
  [
    'requestPasswordReset',
    (auth) => auth.requestPasswordReset('a@b.c'),
    'POST /password/reset-request key-1',
    { email: 'a@b.c' },
  ],
  [
    'resetPassword',
    (auth) => auth.resetPassword({ token: 't', password: 'p' }),
    'POST /password/reset -',
    { token: 't', password: 'p' },
  ],
  ['sessions.list', (auth) => auth.sessions.list(), 'GET /sessions jwt-1'],
  ['sessions.kill', (auth) => auth.sessions.kill('ab12'), 'DELETE /sessions/ab12 jwt-1'],
  [
    'users.list',
    (auth) => auth.users.list({ limit: 5, cursor: 'c&1' }),
    'GET /users?limit=5&cursor=c%261 key-1',
  ],
  ['users.list by id', (auth) => auth.users.list({ userId: 'usr_1' }), 'GET /users?user_id=usr_1 key-1'],
  ['users.list by prefix', (auth) => auth.users.list({ prefix: 'a+b' }), 'GET /users?prefix=a%2Bb key-1'],
  ['users.sessions', (auth) => auth.users.sessions('a@b.c'), 'GET /users/a%40b.c/sessions key-1'],
  ['users.unlock', (auth) => auth.users.unlock('a@b.c'), 'POST /users/a%40b.c/unlock key-1'],
  ['users.endSessions', (auth) => auth.users.endSessions('a@b.c'), 'POST /users/a%40b.c/logout key-1'],
  ['users.delete', (auth) => auth.users.delete('a+x/y@b.c'), 'DELETE /users/a%2Bx%2Fy%40b.c key-1'],
  [
    'users.setAppMetadata',
    (auth) => auth.users.setAppMetadata('a@b.c', { role: 'x' }),
    'PATCH /users/a%40b.c/app-metadata key-1',
    { metadata: { role: 'x' } },
  ],
  ['jwks', (auth) => auth.jwks(), 'GET /jwks -'],
]

describe('the auth client', () => {
  it.each(calls)('sends %s to its route with its credential', async (_name, call, ...[request, body]) => {
    const { auth, received } = await clientOf([answerJson(pair)])
    auth.setSession(session)
    expect(await call(auth)).toEqual(pair)
    const [sent] = received
    expect(received).toHaveLength(1)
    const credential = sent?.headers.authorization?.replace('Bearer ', '') ?? '-'
    expect(`${sent?.method} ${sent?.url} ${credential}`).toBe(request.replace(' /', ' /v1/auth/'))
    expect(sent?.body).toBe(body === undefined ? '' : JSON.stringify(body))
    expect(sent?.headers['content-type']).toBe(body === undefined ? undefined : 'application/json')
  })

  it.each(calls)('aborts %s by its signal', async (name, call) => {
    const { auth, received } = await clientOf([answerJson(pair)])
    auth.setSession(session)
    const signal = AbortSignal.abort(new Error('Enough'))
    const withSignal = signalled(auth, signal)
    await expect(call(withSignal), name).rejects.toThrow('Enough')
    expect(received).toEqual([])
  })

  it.each([
    'register',
    'login',
    'magicLink.verify',
    'verifyEmail',
    'resetPassword',
    'logout',
    'users.delete',
  ])('does not repeat %s when its answer is lost', async (wanted) => {
    const { auth, received } = await clientOf([cutOff])
    auth.setSession(session)
    const call = calls.find(([name]) => name === wanted)?.[1]
    await expect(call?.(auth)).rejects.toBeInstanceOf(NetworkError)
    expect(received).toHaveLength(1)
  })

  it.each(['status', 'me', 'jwks', 'sessions.list', 'users.list', 'updateUserMetadata', 'refresh'])(
    'repeats %s when its answer is lost',
    async (wanted) => {
      const { auth, received } = await clientOf([cutOff, answerJson(pair)])
      auth.setSession(session)
      const call = calls.find(([name]) => name === wanted)?.[1]
      expect(await call?.(auth)).toEqual(pair)
      expect(received).toHaveLength(2)
    },
  )

  it('rejects with the refusals of the service', async () => {
    const { auth } = await clientOf([
      answerProblem(401, 'invalid_credentials'),
      answerProblem(402, 'license_required'),
      answerProblem(404, 'not_found'),
    ])
    await expect(auth.login(alice)).rejects.toMatchObject({ status: 401, code: 'invalid_credentials' })
    await expect(auth.status()).rejects.toMatchObject({ status: 402, code: 'license_required' })
    await expect(auth.users.delete('a@b.c')).rejects.toBeInstanceOf(NotFoundError)
    expect(auth.session).toBeUndefined()
  })

  it('has a type for each answer', () => {
    expectTypeOf<Auth['me']>().returns.resolves.toEqualTypeOf<Me>()
    expectTypeOf<Auth['register']>().returns.resolves.toEqualTypeOf<Registered>()
    expectTypeOf<Registered['token']>().toEqualTypeOf<string | null>()
    expectTypeOf<Me['app_metadata']>().toEqualTypeOf<Record<string, unknown>>()
    expectTypeOf<UserPage['users'][number]['locked_until_ms']>().toEqualTypeOf<number | null>()
    expectTypeOf<UserPage['users'][number]['passkeys']>().toEqualTypeOf<number>()
  })
})

describe('a sign-in', () => {
  const signIns = calls.filter(([name]) => ['register', 'login', 'magicLink.verify'].includes(name))

  it.each(signIns)('stores the session that %s returns', async (_name, call) => {
    const { auth } = await clientOf([answerJson({ ...pair, user_id: 'usr_1', verified: true })])
    await call(auth)
    expect(auth.session).toMatchObject(session)
  })

  it('does not begin or end a session while the e-mail must be verified first', async () => {
    const unverified = {
      user_id: 'usr_1',
      email: alice.email,
      token: null,
      refresh_token: null,
      expires_in: null,
    }
    const { auth } = await clientOf([answerJson(unverified, 201)])
    expect(await auth.register(alice)).toEqual(unverified)
    expect(auth.session).toBeUndefined()
    auth.setSession(session)
    await auth.register(alice)
    expect(auth.session).toMatchObject(session)
  })
})

describe('a sign-out', () => {
  it.each([undefined, 'local', 'global'] as const)('removes the session with scope %s', async (scope) => {
    const { auth } = await clientOf([answerJson({ logged_out: true, sessions: 1 })])
    auth.setSession(session)
    expect(await auth.logout({ scope })).toEqual({ logged_out: true, sessions: 1 })
    expect(auth.session).toBeUndefined()
  })

  it('keeps the session with scope others', async () => {
    const { auth } = await clientOf([answerJson({ logged_out: true, sessions: 3 })])
    auth.setSession(session)
    await auth.logout({ scope: 'others' })
    expect(auth.session).toMatchObject(session)
  })

  it('keeps the session when the service cannot be reached, and removes it when the service does not know it', async () => {
    const { auth } = await clientOf([cutOff, answerProblem(401, 'invalid_token')])
    auth.setSession(session)
    await expect(auth.logout()).rejects.toBeInstanceOf(NetworkError)
    expect(auth.session).toMatchObject(session)
    await expect(auth.logout()).rejects.toMatchObject({ code: 'invalid_token' })
    expect(auth.session).toBeUndefined()
  })

  it('does not remove a session that was set during the call', async () => {
    const { auth } = await clientOf([
      (request, response) => {
        auth.setSession({ token: 'jwt-2', refresh_token: 'refresh-2' })
        return answerJson({ logged_out: true, sessions: 1 })(request, response)
      },
    ])
    auth.setSession(session)
    await auth.logout()
    expect(auth.session?.token).toBe('jwt-2')
  })
})

describe('a revoked token', () => {
  it('is renewed at the next call, because its session is still valid', async () => {
    const { auth, received } = await clientOf([
      answerJson({ revoked: true, jti: 'j' }),
      answerJson({ ...pair, token: 'jwt-2' }),
      answerJson({}),
    ])
    auth.setSession(session)
    await auth.revoke()
    await auth.me()
    expect(received.map(({ url }) => url)).toEqual(['/v1/auth/revoke', '/v1/auth/refresh', '/v1/auth/me'])
    expect(received[2]?.headers.authorization).toBe('Bearer jwt-2')
  })

  it('ends the session when another client has ended it', async () => {
    const { auth } = await clientOf([
      answerProblem(401, 'token_revoked'),
      answerProblem(401, 'refresh_invalid'),
    ])
    auth.setSession(session)
    await expect(auth.me()).rejects.toMatchObject({ code: 'refresh_invalid' })
    expect(auth.session).toBeUndefined()
  })
})

describe('with several credentials', () => {
  const all = { apiKey: 'key-1', token: 'fixed', getToken: () => 'from-getter' }
  const cases: [given: Partial<ServiceClientOptions>, data: string, user: string][] = [
    [{}, '-', '-'],
    [{ apiKey: 'key-1' }, 'key-1', '-'],
    [{ apiKey: 'key-1', token: 'fixed' }, 'fixed', 'fixed'],
    [all, 'from-getter', 'from-getter'],
  ]

  it.each(cases)(
    'uses, with %o, %s for data and %s for users while no user is signed in',
    async (given, data, user) => {
      const { client, auth, received } = await clientOf([answerJson({})], { apiKey: undefined, ...given })
      await client.agent('notes').head()
      await auth.me()
      const sent = received.map(({ headers }) => headers.authorization?.replace('Bearer ', '') ?? '-')
      expect(sent).toEqual([data, user])
    },
  )

  it('prefers the session, and uses only the key for administration', async () => {
    const { client, auth, received } = await clientOf([answerJson({})], all)
    auth.setSession(session)
    await client.agent('notes').head()
    await auth.me()
    await auth.users.list()
    auth.setSession(undefined)
    await client.agent('notes').head()
    const sent = received.map(({ headers }) => headers.authorization)
    expect(sent).toEqual(['Bearer jwt-1', 'Bearer jwt-1', 'Bearer key-1', 'Bearer from-getter'])
  })

  it.each([{ token: 'fixed' }, { getToken: () => 'from-getter' }])(
    'refreshes nothing for %o',
    async (given) => {
      const { client, received } = await clientOf([answerProblem(401, 'token_expired')], given)
      await expect(client.agent('notes').head()).rejects.toMatchObject({ code: 'token_expired' })
      expect(received).toHaveLength(1)
    },
  )
})

/** The auth client with `signal` added to the options of each call. */
function signalled(auth: Auth, signal: AbortSignal): Auth {
  const optionsFirst = new Set(['refresh', 'logout', 'revoke', 'status', 'me', 'jwks', 'list'])
  const wrap = (target: object): object =>
    new Proxy(target, {
      get(_target, name) {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member === 'object' && member !== null) return wrap(member)
        if (typeof member !== 'function') return member
        return async (...given: object[]) => {
          const isLone = optionsFirst.has(String(name))
          const options = isLone ? { ...given[0], signal } : { signal }
          return Reflect.apply(member, target, isLone ? [options] : [...given, options])
        }
      },
    })
  return wrap(auth) as Auth
}
