import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { passkeyRoutes } from '../../../src/front/routes/auth/passkeys.js'
import { type Account, linkToken, outcomeOf, register, tally, tryLogin } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import {
  type Audited,
  auditsOf,
  refused,
  refusesInvalidBodies,
  restartWithFullDisk,
  acceptsUsersOnly,
} from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { type Deviation, SoftAuthenticator } from '../../support/auth/authenticator.js'
import {
  addPasskey,
  beginRegistration,
  beginSignIn,
  finishRegistration,
  finishSignIn,
  passkeyEnv,
  testRelyingParty,
  signInBy,
} from '../../support/auth/passkeys.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer
let ada: Account

beforeAll(async () => {
  server = await startAuthServer({ env: passkeyEnv })
  ada = await register(server, 'ada@example.org')
})
afterAll(() => server.stop())

let accounts = 0
const newAccount = () => register(server, `user-${accounts++}@example.org`)

const registerRoute = 'POST /v1/auth/passkey/register'
const authenticateRoute = 'POST /v1/auth/passkey/authenticate'
const challengeRoute = 'POST /v1/auth/passkey/authenticate-challenge'
const failed = '401 passkey_failed'

/** Faults of the client or the authenticator in both ceremonies. */
const faults: [what: string, deviation: Deviation][] = [
  ['another origin', { origin: 'https://app.example.org.evil.test' }],
  ['another port', { origin: 'https://app.example.org:8443' }],
  ['the domain of another party', { rpId: 'evil.test' }],
  ['a user who was not verified', { userVerified: false }],
  ['a user who was not there', { userPresent: false }],
  ['another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
  ['a page framed by another site', { crossOrigin: true }],
]

describe('registering a passkey', () => {
  it('starts with options of the user, which are not cached', async () => {
    const answer = await checkedCall(server, 'POST /v1/auth/passkey/register-challenge', { key: ada.token })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const { session_token, creation_options: options } = answer.body
    expect(Buffer.from(session_token, 'base64url')).toHaveLength(32)
    expect(Buffer.from(options.challenge, 'base64url')).toHaveLength(32)
    expect(Buffer.from(options.user.id, 'base64url').toString()).toBe(ada.userId)
    expect(options).toMatchObject({
      rp: { id: 'example.org', name: 'Strandfast' },
      user: { name: ada.email },
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      attestation: 'none',
    })
  })

  it('is recorded, and lists the passkey, which is excluded from the next registration', async () => {
    const { token, userId } = await newAccount()
    const { result, records, types } = await auditsOf(server, () => addPasskey(server, token))
    expect(types).toEqual(['auth/passkey_registered'])
    expect(records[0]?.payload).toMatchObject({ user_id: userId, outcome: 'success' })
    const { body } = await checkedCall(server, 'GET /v1/auth/passkeys', { key: token })
    expect(body.passkeys).toMatchObject([{ id: result.id, last_used_at_ms: null }])
    const { creation_options } = await beginRegistration(server, token)
    const known = { id: result.id, type: 'public-key', transports: ['internal'] }
    expect(creation_options.excludeCredentials).toEqual([known])
  })

  it.each(faults)('is refused with %s, and its session is used up', async (_what, deviation) => {
    const authenticator = new SoftAuthenticator(testRelyingParty)
    const { session_token, creation_options } = await beginRegistration(server, ada.token)
    const wrong = { session_token, registration: authenticator.register(creation_options, deviation) }
    await refused(server, registerRoute, { key: ada.token, body: wrong, outcome: failed })
    const right = { session_token, registration: authenticator.register(creation_options) }
    await refused(server, registerRoute, { key: ada.token, body: right, outcome: failed })
    expect((await checkedCall(server, 'GET /v1/auth/passkeys', { key: ada.token })).body.passkeys).toEqual([])
  })

  it('is refused for an invalid registration, and its session is used up', async () => {
    const authenticator = new SoftAuthenticator(testRelyingParty)
    for (const registration of [{}, { id: 'AAAA' }, authenticator.assert({ challenge: 'AAAA' })]) {
      const { session_token, creation_options } = await beginRegistration(server, ada.token)
      const body = { session_token, registration }
      await refused(server, registerRoute, { key: ada.token, body, outcome: failed })
      const right = { session_token, registration: authenticator.register(creation_options) }
      await refused(server, registerRoute, { key: ada.token, body: right, outcome: failed })
    }
  })

  it('is refused with a session that was used, is unknown, of another user or for signing in', async () => {
    const { token } = await newAccount()
    const authenticator = new SoftAuthenticator(testRelyingParty)
    const own = await beginRegistration(server, token)
    const registration = authenticator.register(own.creation_options)
    const use = (session_token: string) => ({
      key: token,
      body: { session_token, registration },
      outcome: failed,
    })
    const others = await beginRegistration(server, ada.token)
    const signIn = await beginSignIn(server)
    for (const session of [others.session_token, signIn.session_token, '', 'A'.repeat(43), ada.token]) {
      await refused(server, registerRoute, use(session))
    }
    const answer = await finishRegistration(server, token, { session_token: own.session_token, registration })
    expect(answer.status, answer.text).toBe(200)
    await refused(server, registerRoute, use(own.session_token))
  })

  it('succeeds once if one session is finished concurrently', async () => {
    const { token } = await newAccount()
    const { session_token, creation_options } = await beginRegistration(server, token)
    const attempts = Array.from({ length: 20 }, () => {
      const registration = new SoftAuthenticator(testRelyingParty).register(creation_options)
      return outcomeOf(finishRegistration(server, token, { session_token, registration }))
    })
    expect(tally(await Promise.all(attempts))).toEqual({ '200': 1, [failed]: 19 })
  })

  it('is refused for the passkey of another user, and for a decoy passkey', async () => {
    const owner = await newAccount()
    const { id } = await addPasskey(server, owner.token)
    const { request_options } = await beginSignIn(server, owner.email)
    const [first, second] = request_options.allowCredentials
    expect(first.id).toBe(id)
    for (const known of [first.id, second.id]) {
      const thief = new SoftAuthenticator(testRelyingParty, Buffer.from(known, 'base64url'))
      const { session_token, creation_options } = await beginRegistration(server, ada.token)
      const body = { session_token, registration: thief.register(creation_options) }
      await refused(server, registerRoute, { key: ada.token, body, outcome: failed })
    }
  })

  it('is refused with 413 for a user with too many passkeys', async () => {
    const { token } = await newAccount()
    for (let count = 0; count < limits.passkeysPerUserMax; count++) await addPasskey(server, token)
    const route = 'POST /v1/auth/passkey/register-challenge'
    await refused(server, route, { key: token, outcome: '413 too_large' })
  })

  acceptsUsersOnly({
    server: () => server,
    route: 'POST /v1/auth/passkey/register-challenge',
    key: () => ada.token,
  })
  const body = { session_token: 'x', registration: {} }
  acceptsUsersOnly({ server: () => server, route: registerRoute, body, key: () => ada.token })
  refusesInvalidBodies({ server: () => server, route: registerRoute, body, key: () => ada.token })
})

describe('a registration that fails', () => {
  /** The failures in the strand that an action causes. */
  async function reasonsOf(action: () => Promise<unknown>): Promise<unknown[]> {
    const { records } = await auditsOf(server, action)
    return records.map(({ type, payload: { user_id, method, reason, outcome } }) => {
      expect([type, method, outcome]).toEqual(['auth/login_failed', 'passkey_registration', 'failure'])
      return [user_id, reason]
    })
  }

  it.each<[reason: string, deviation: Deviation]>([
    ['wrong_origin', { origin: 'https://evil.example.org' }],
    ['wrong_origin', { crossOrigin: true }],
    ['wrong_challenge', { challenge: 'AAAA' }],
    ['wrong_rp', { rpId: 'evil.test' }],
    ['user_not_verified', { userVerified: false }],
    ['user_not_verified', { userPresent: false }],
    ['malformed', { type: 'webauthn.get' }],
  ])('leaves the reason %s in the strand of its user: %j', async (reason, deviation) => {
    const { token, userId } = await newAccount()
    const { session_token, creation_options } = await beginRegistration(server, token)
    const registration = new SoftAuthenticator(testRelyingParty).register(creation_options, deviation)
    const body = { session_token, registration }
    const action = () => refused(server, registerRoute, { key: token, body, outcome: failed })
    expect(await reasonsOf(action)).toEqual([[userId, reason]])
  })

  it('leaves a reason for a malformed credential, and for a session that cannot be used', async () => {
    const failing = async (body: (account: Account) => Promise<object>) => {
      const account = await newAccount()
      const call = { key: account.token, body: await body(account), outcome: failed }
      const [found, ...more] = await reasonsOf(() => refused(server, registerRoute, call))
      expect(more).toEqual([])
      return [account.userId, found]
    }
    const malformed = await failing(async ({ token }) => {
      const { session_token } = await beginRegistration(server, token)
      return { session_token, registration: { id: 'AAAA' } }
    })
    expect(malformed[1]).toEqual([malformed[0], 'malformed'])
    for (const session_token of ['', 'A'.repeat(43)]) {
      const unknown = await failing(async () => ({ session_token, registration: {} }))
      expect(unknown[1]).toEqual([unknown[0], 'unknown_challenge'])
    }
    const others = await failing(async () => {
      const { session_token } = await beginRegistration(server, ada.token)
      return { session_token, registration: {} }
    })
    expect(others[1]).toEqual([others[0], 'other_user'])
  })

  it('has its own answer for a passkey that the user has already registered', async () => {
    const { token, userId } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { session_token, creation_options } = await beginRegistration(server, token)
    const body = { session_token, registration: authenticator.register(creation_options) }
    const call = { key: token, body, outcome: '409 passkey_exists' }
    expect(await reasonsOf(() => refused(server, registerRoute, call))).toEqual([
      [userId, 'already_registered'],
    ])
  })

  it('has the same answer and reason for the passkey of another user and for a decoy', async () => {
    const owner = await newAccount()
    await addPasskey(server, owner.token)
    const { request_options } = await beginSignIn(server, owner.email)
    for (const { id } of request_options.allowCredentials.slice(0, 2)) {
      const { token, userId } = await newAccount()
      const thief = new SoftAuthenticator(testRelyingParty, Buffer.from(id, 'base64url'))
      const { session_token, creation_options } = await beginRegistration(server, token)
      const body = { session_token, registration: thief.register(creation_options) }
      const call = { key: token, body, outcome: failed }
      expect(await reasonsOf(() => refused(server, registerRoute, call))).toEqual([[userId, 'other_user']])
    }
  })
})

describe('a credential in another spelling', () => {
  const padded = (text: string) => text + '='.repeat((4 - (text.length % 4)) % 4)
  const plain = (text: string) => padded(text).replaceAll('-', '+').replaceAll('_', '/')

  /** A credential with all of its bytes in another spelling. */
  function spelled<Sent>(sent: Sent, spell: (text: string) => string): Sent {
    const bytes = ['id', 'rawId', 'clientDataJSON', 'attestationObject', 'authenticatorData', 'signature']
    const text = JSON.stringify(sent, (name, value) =>
      [...bytes, 'userHandle'].includes(name) && typeof value === 'string' ? spell(value) : value,
    )
    return JSON.parse(text)
  }

  it.each([
    ['padded base64url', 1, padded],
    ['base64', 2, plain],
  ])('is accepted in both ceremonies: %s', async (_name, byte, spell) => {
    // Its id has both characters in which the alphabets differ, and needs padding.
    const id = Buffer.concat([Buffer.from('-_-_', 'base64url'), Buffer.alloc(20, byte)])
    const { token, userId } = await newAccount()
    const authenticator = new SoftAuthenticator(testRelyingParty, id)
    const { session_token, creation_options } = await beginRegistration(server, token)
    const registration = spelled(authenticator.register(creation_options), spell)
    expect(registration.id).not.toBe(authenticator.id)
    const answer = await finishRegistration(server, token, { session_token, registration })
    expect(answer.status, answer.text).toBe(200)
    const { body } = await checkedCall(server, 'GET /v1/auth/passkeys', { key: token })
    expect(body.passkeys).toMatchObject([{ id: authenticator.id }])
    const started = await beginSignIn(server)
    const assertion = spelled(authenticator.assert(started.request_options), spell)
    const signedIn = await finishSignIn(server, { session_token: started.session_token, assertion })
    expect(signedIn.body).toMatchObject({ user_id: userId })
  })
})

describe('signing in with a passkey', () => {
  it.each([
    ['by e-mail', true],
    ['by a discoverable passkey', false],
  ])('opens a session %s, and is recorded', async (_how, named) => {
    const { token, email, userId } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { result, records, types } = await auditsOf(server, () =>
      signInBy(server, authenticator, named ? { email } : {}),
    )
    expect(result.status, result.text).toBe(200)
    expect(result.headers.get('cache-control')).toBe('no-store')
    expect(result.body).toMatchObject({ user_id: userId, email, verified: false, token_type: 'Bearer' })
    const { sub, sid, amr } = decodeJwt(result.body.token)
    expect([sub, amr]).toEqual([userId, ['pop', 'mfa', 'user']])
    expect(types).toEqual(['auth/passkey_login'])
    expect(records[0]?.payload).toMatchObject({ user_id: userId, sid, outcome: 'success' })
    const { body } = await checkedCall(server, 'GET /v1/auth/passkeys', { key: result.body.token })
    expect(body.passkeys).toMatchObject([{ id: authenticator.id, last_used_at_ms: expect.any(Number) }])
    const refresh = { refresh_token: result.body.refresh_token }
    expect((await checkedCall(server, 'POST /v1/auth/refresh', { key: null, body: refresh })).status).toBe(
      200,
    )
  })

  it.each([
    ...faults,
    ['a registration', { type: 'webauthn.create' }] as const,
    ['another user', { userHandle: Buffer.from('usr_1').toString('base64url') }] as const,
  ])('is refused with %s, and its session is used up', async (_what, deviation) => {
    const { token, email } = ada
    const authenticator = await addPasskey(server, token)
    const { session_token, request_options } = await beginSignIn(server, email)
    const wrong = { session_token, assertion: authenticator.assert(request_options, deviation) }
    await refused(server, authenticateRoute, { body: wrong, outcome: failed })
    const right = { session_token, assertion: authenticator.assert(request_options) }
    await refused(server, authenticateRoute, { body: right, outcome: failed })
    expect((await signInBy(server, authenticator, { email })).status).toBe(200)
  })

  it('is refused for an invalid assertion, and its session is used up', async () => {
    const { token } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { session_token, request_options } = await beginSignIn(server)
    await refused(server, authenticateRoute, { body: { session_token, assertion: {} }, outcome: failed })
    const right = { session_token, assertion: authenticator.assert(request_options) }
    await refused(server, authenticateRoute, { body: right, outcome: failed })
  })

  it('is refused with a session that was used, is unknown, of another e-mail or for registering', async () => {
    const { token, email } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const attempt = async (session_token: string, options: { challenge: string }) => {
      const body = { session_token, assertion: authenticator.assert(options) }
      await refused(server, authenticateRoute, { body, outcome: failed })
    }
    for (const other of [ada.email, 'absent@example.org']) {
      const { session_token, request_options } = await beginSignIn(server, other)
      await attempt(session_token, request_options)
    }
    const registration = await beginRegistration(server, token)
    await attempt(registration.session_token, registration.creation_options)
    await attempt('A'.repeat(43), { challenge: 'AAAA' })
    const { session_token, request_options } = await beginSignIn(server, email)
    const assertion = authenticator.assert(request_options)
    expect((await finishSignIn(server, { session_token, assertion })).status).toBe(200)
    await attempt(session_token, request_options)
  })

  it('succeeds once if one session is finished concurrently', async () => {
    const { token, email } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { session_token, request_options } = await beginSignIn(server, email)
    const attempts = Array.from({ length: 20 }, () =>
      outcomeOf(finishSignIn(server, { session_token, assertion: authenticator.assert(request_options) })),
    )
    expect(tally(await Promise.all(attempts))).toEqual({ '200': 1, [failed]: 19 })
  })

  it('is refused if the counter has not increased, which is recorded', async () => {
    const { token, email, userId } = await newAccount()
    const authenticator = await addPasskey(server, token)
    expect((await signInBy(server, authenticator, { email, counter: 9 })).status).toBe(200)
    const why = { user_id: userId, sid: null, outcome: 'failure', method: 'passkey', reason: 'old_counter' }
    const written: (readonly Audited[])[] = []
    for (const counter of [9, 8, 0]) {
      const { result, records } = await auditsOf(server, () =>
        signInBy(server, authenticator, { email, counter }),
      )
      expect(`${result.status} ${result.body.code}`).toBe(failed)
      written.push(records)
    }
    expect(written).toMatchObject([[{ type: 'auth/login_failed', payload: { ...why, count: 1 } }], [], []])
    const { result, records, types } = await auditsOf(server, () =>
      signInBy(server, authenticator, { email, counter: 10 }),
    )
    expect(result.status).toBe(200)
    expect(types).toEqual(['auth/login_failed', 'auth/passkey_login'])
    expect(records[0]?.payload).toMatchObject({ ...why, count: 2 })
  })

  it('records different reasons for a wrong origin and a lost device, but gives the same answer', async () => {
    const lost = new SoftAuthenticator(testRelyingParty)
    // It was never registered on this server.
    lost.register((await beginRegistration(server, (await newAccount()).token)).creation_options)
    const reasonOf = async (by: SoftAuthenticator | undefined, deviation: Deviation) => {
      const { token, email, userId } = await newAccount()
      const authenticator = by ?? (await addPasskey(server, token))
      const { result, records } = await auditsOf(server, () =>
        signInBy(server, authenticator, { email, ...deviation }),
      )
      expect(`${result.status} ${result.body.code}`).toBe(failed)
      expect(records).toMatchObject([{ type: 'auth/login_failed', payload: { user_id: userId, count: 1 } }])
      const { email_hmac: hmac, method, reason } = records[0]?.payload ?? {}
      expect([hmac, method]).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/), 'passkey'])
      return reason
    }
    const elsewhere = { origin: 'https://evil.example.org' }
    expect(await reasonOf(undefined, elsewhere)).toBe('wrong_origin')
    expect(await reasonOf(lost, {})).toBe('unknown_passkey')
    expect(await reasonOf(undefined, { challenge: 'AAAA' })).toBe('wrong_challenge')
    expect(await reasonOf(undefined, { userPresent: false })).toBe('user_not_verified')
  })

  it('is malformed without a user handle, unless it began with an e-mail', async () => {
    const { token, email, userId } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { result, records } = await auditsOf(server, () =>
      signInBy(server, authenticator, { userHandle: null }),
    )
    expect(`${result.status} ${result.body.code}`).toBe(failed)
    expect(records).toMatchObject([{ payload: { user_id: userId, method: 'passkey', reason: 'malformed' } }])
    expect((await signInBy(server, authenticator, { email, userHandle: null })).status).toBe(200)
  })

  it('is malformed with authenticator data that is too short for its flags', async () => {
    const { token, email, userId } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const { session_token, request_options } = await beginSignIn(server, email)
    const { response, ...assertion } = authenticator.assert(request_options)
    const authenticatorData = Buffer.from(response.authenticatorData, 'base64url').subarray(0, 32)
    const short = { ...response, authenticatorData: authenticatorData.toString('base64url') }
    const { records } = await auditsOf(server, () =>
      finishSignIn(server, { session_token, assertion: { ...assertion, response: short } }),
    )
    expect(records).toMatchObject([{ payload: { user_id: userId, method: 'passkey', reason: 'malformed' } }])
  })

  it('records unknown e-mails only in a common record', async () => {
    const lost = new SoftAuthenticator(testRelyingParty)
    const { types } = await auditsOf(server, () => signInBy(server, lost, { email: 'no-one@example.org' }))
    expect(types).toEqual([])
  })

  it('is possible while the password is locked, and does not unlock it', async () => {
    const { token, email, password } = await newAccount()
    const authenticator = await addPasskey(server, token)
    for (let failure = 0; failure < 5; failure++) await tryLogin(server, email, 'wrong')
    expect((await tryLogin(server, email, password)).body.code).toBe('account_locked')
    expect((await signInBy(server, authenticator, { email })).status).toBe(200)
    expect((await tryLogin(server, email, password)).body.code).toBe('account_locked')
  })

  it('does not reveal whether an e-mail has an account or passkeys', async () => {
    const some = await newAccount()
    const { id } = await addPasskey(server, some.token)
    await addPasskey(server, some.token)
    const bare = await newAccount()
    const shapes = []
    for (const email of [some.email, bare.email, 'absent@example.org']) {
      const first = await beginSignIn(server, email)
      const again = await beginSignIn(server, ` ${email.toUpperCase()} `)
      const { challenge, allowCredentials, ...rest } = first.request_options
      expect(again.request_options.allowCredentials).toEqual(allowCredentials)
      expect(again.request_options.challenge).not.toBe(challenge)
      expect(new Set(allowCredentials.map((one: { id: string }) => one.id)).size).toBe(
        allowCredentials.length,
      )
      shapes.push({ rest, each: allowCredentials.map((one: object) => Object.keys(one)) })
    }
    expect(shapes).toEqual(Array(3).fill(shapes[0]))
    const { request_options } = await beginSignIn(server, some.email)
    expect(request_options.allowCredentials.map((one: { id: string }) => one.id)).toContain(id)
  })

  it('starts without a body or an e-mail, and refuses an invalid e-mail', async () => {
    const answer = await checkedCall(server, challengeRoute, { key: null })
    expect(answer.status).toBe(200)
    expect(answer.body.request_options).not.toHaveProperty('allowCredentials')
    for (const email of ['', 'ada', 'ada@example.org\u0000']) {
      await refused(server, challengeRoute, { body: { email }, outcome: '400 validation_failed' })
    }
    for (const raw of ['null', '[]', '{"email":1}', '{"email":null}', '{"mail":"a@b.co"}']) {
      await refused(server, challengeRoute, { raw, outcome: '400 validation_failed' })
    }
  })

  refusesInvalidBodies({
    server: () => server,
    route: authenticateRoute,
    body: { session_token: 'x', assertion: {} },
  })
})

describe('the passkeys of a user', () => {
  it('are deleted only by the user, which is recorded', async () => {
    const { token, email } = await newAccount()
    const authenticator = await addPasskey(server, token)
    const route = `DELETE /v1/auth/passkeys/${authenticator.id}`
    for (const other of [route, 'DELETE /v1/auth/passkeys/AAAA', 'DELETE /v1/auth/passkeys/a%2Fb']) {
      await refused(server, other, { key: ada.token, outcome: '404 not_found' })
    }
    const { result, types } = await auditsOf(server, () => checkedCall(server, route, { key: token }))
    expect([result.status, result.body]).toEqual([200, { deleted: true, id: authenticator.id }])
    expect(types).toEqual(['auth/passkey_removed'])
    await refused(server, route, { key: token, outcome: '404 not_found' })
    expect((await checkedCall(server, 'GET /v1/auth/passkeys', { key: token })).body).toEqual({
      passkeys: [],
    })
    expect(await outcomeOf(signInBy(server, authenticator, { email }))).toBe(failed)
  })

  it('are counted in the list of users', async () => {
    const { token, email } = await newAccount()
    const counted = async () => {
      const { body } = await checkedCall(server, `GET /v1/auth/users?prefix=${email}`)
      return body.users.map((user: { email: string; passkeys: number }) => [user.email, user.passkeys])
    }
    expect(await counted()).toEqual([[email, 0]])
    const { id } = await addPasskey(server, token)
    await addPasskey(server, token)
    expect(await counted()).toEqual([[email, 2]])
    expect((await checkedCall(server, `DELETE /v1/auth/passkeys/${id}`, { key: token })).status).toBe(200)
    expect(await counted()).toEqual([[email, 1]])
  })

  it('are deleted with the user', async () => {
    const { token, email } = await newAccount()
    const authenticator = await addPasskey(server, token)
    expect((await checkedCall(server, `DELETE /v1/auth/users/${email}`)).status).toBe(200)
    expect(await outcomeOf(signInBy(server, authenticator))).toBe(failed)
  })

  acceptsUsersOnly({ server: () => server, route: 'GET /v1/auth/passkeys', key: () => ada.token })
  acceptsUsersOnly({
    server: () => server,
    route: 'DELETE /v1/auth/passkeys/AAAA',
    key: () => ada.token,
  })
})

describe('servers with other settings', () => {
  it('accept several origins of pages and apps, and name the pages to browsers', async () => {
    const { token, email } = await newAccount()
    const authenticator = await addPasskey(server, token)
    await server.halt()
    const android = `android:apk-key-hash:${'A'.repeat(43)}`
    const origins = [testRelyingParty.origin, 'https://example.co.uk', android]
    const env = { ...passkeyEnv, SERVICE_WEBAUTHN_ORIGIN: origins.join() }
    server = await startAuthServer({ dataDir: server.dataDir, env })
    for (const origin of origins)
      expect(await outcomeOf(signInBy(server, authenticator, { email, origin })), origin).toBe('200')
    for (const origin of ['https://example.org', android.replace(/A$/, 'B'), `${origins.join()}`])
      expect(await outcomeOf(signInBy(server, authenticator, { email, origin })), origin).toBe(failed)
    const { status, headers, body } = await checkedCall(server, 'GET /.well-known/webauthn', { key: null })
    expect([status, headers.get('content-type'), body]).toEqual([
      200,
      'application/json',
      { origins: origins.slice(0, 2) },
    ])
  })

  describe('that require a verified e-mail', () => {
    const decoys = async () =>
      (await beginSignIn(server, 'absent@example.org')).request_options.allowCredentials
    let email = ''
    let authenticator: SoftAuthenticator
    let decoysBefore: unknown

    beforeAll(async () => {
      const account = await newAccount()
      ;({ email } = account)
      authenticator = await addPasskey(server, account.token)
      decoysBefore = await decoys()
      await server.halt()
      const env = { ...passkeyEnv, SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true' }
      server = await startAuthServer({ dataDir: server.dataDir, env })
    })

    it('refuse unverified users, but only after the right passkey', async () => {
      expect(await outcomeOf(signInBy(server, authenticator, { email }))).toBe('403 email_not_verified')
      expect(await outcomeOf(signInBy(server, authenticator, { email, userVerified: false }))).toBe(failed)
      const verify = await linkToken(server, 'verify-email/send', email)
      await checkedCall(server, 'POST /v1/auth/verify-email', { key: null, body: { token: verify } })
      expect(await outcomeOf(signInBy(server, authenticator, { email }))).toBe('200')
    })

    it('show the same decoy passkeys after a restart', async () => {
      expect(await decoys()).toEqual(decoysBefore)
    })
  })

  it('refuse ceremonies while the disk is full, but delete passkeys', async () => {
    const { token } = ada
    const { id } = await addPasskey(server, token)
    server = await restartWithFullDisk(server)
    const full = '507 storage_full'
    await refused(server, challengeRoute, { outcome: full })
    await refused(server, 'POST /v1/auth/passkey/register-challenge', { key: token, outcome: full })
    expect((await checkedCall(server, `DELETE /v1/auth/passkeys/${id}`, { key: token })).status).toBe(200)
  })

  it('answer 501 without a relying party, but list and delete passkeys', async () => {
    const dataDir = server.dataDir
    await server.halt()
    server = await startAuthServer({ dataDir })
    const { token } = await newAccount()
    const body = { session_token: 'x', registration: {}, assertion: {} }
    for (const route of [
      'POST /v1/auth/passkey/register-challenge',
      registerRoute,
      challengeRoute,
      authenticateRoute,
    ]) {
      await refused(server, route, { key: token, body, outcome: '501 passkeys_not_configured' })
    }
    const related = 'GET /.well-known/webauthn'
    await refused(server, related, { outcome: '501 passkeys_not_configured' })
    expect((await checkedCall(server, 'GET /v1/auth/passkeys', { key: token })).body).toEqual({
      passkeys: [],
    })
    await refused(server, 'DELETE /v1/auth/passkeys/AAAA', { key: token, outcome: '404 not_found' })
  })
})

it('returned every documented success', () => {
  expect(untestedSuccesses(passkeyRoutes)).toEqual([])
})
