import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerRoutes } from '../../../src/routes/auth/register.js'
import { linkToken, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { ask, unseenSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesOtherBodies, restartedFull } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import type { TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const route = 'POST /v1/auth/register'
const password = usualPassword
const signUp = (email: string, chosen = password) =>
  ask(server, route, { key: null, body: { email, password: chosen } })

describe('registering', () => {
  it('makes an account that is signed in and not verified, and writes it down', async () => {
    const { result, records, types } = await auditsOf(server, () => signUp('ada@example.org'))
    expect(result.status).toBe(201)
    expect(result.headers.get('cache-control')).toBe('no-store')
    const { user_id, email, token, expires_in } = result.body
    expect(email).toBe('ada@example.org')
    expect(expires_in).toBe(3_600)
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'EdDSA', typ: 'JWT' })
    const claims = decodeJwt(token)
    expect(claims).toMatchObject({ sub: user_id, email, app_metadata: {}, user_metadata: {}, amr: ['pwd'] })
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3_600)
    expect(types).toEqual(['auth/register'])
    expect(records[0]?.payload).toMatchObject({ user_id, sid: claims['sid'], outcome: 'success' })
    const me = await ask(server, 'GET /v1/auth/me', { key: token })
    expect(me.body).toMatchObject({ user_id, email, verified: false })
    expect((await tryLogin(server, email, password)).status).toBe(200)
  })

  it('takes all ways to write one mailbox for one account', async () => {
    expect((await signUp(' Bob@EXAMPLE.org ')).body.email).toBe('bob@example.org')
    for (const same of ['bob@example.org', 'BOB@example.ORG', '\tbob@example.org\n']) {
      const answer = await refused(server, route, {
        body: { email: same, password },
        outcome: '409 email_exists',
      })
      expect(answer.body).not.toHaveProperty('user_id')
    }
    await signUp('\u00e5sa@example.org')
    const decomposed = { email: 'a\u030asa@example.org', password }
    await refused(server, route, { body: decomposed, outcome: '409 email_exists' })
  })

  it('leaves the account alone whose e-mail it is', async () => {
    await signUp('owner@example.org')
    const body = { email: 'owner@example.org', password: 'of somebody else altogether' }
    await refused(server, route, { body, outcome: '409 email_exists' })
    expect((await tryLogin(server, body.email, password)).status).toBe(200)
    expect((await tryLogin(server, body.email, body.password)).status).toBe(401)
  })

  it.each(['', 'ada', 'ada@', '@example.org', 'ada@example', 'a b@example.org', `${'a'.repeat(250)}@b.co`])(
    'answers 400 with a pointer for the e-mail %j',
    async (email) => {
      const answer = await refused(server, route, {
        body: { email, password },
        outcome: '400 validation_failed',
      })
      expect(answer.body.errors).toEqual([
        { pointer: '/email', code: 'validation_failed', detail: answer.body.detail },
      ])
    },
  )

  it.each([
    ['under 8 characters', 'q7#kZ9p', 1],
    ['under 8 characters, though of more bytes', '\u{1f980}'.repeat(7), 1],
    ['over 1,024 bytes', `${'é'.repeat(512)}x`, 1],
    ['on the list', 'password1', 1],
    ['on the list but for its case', 'PassWord1', 1],
  ])('answers 422 with the reasons for a password %s', async (_what, weak, reasons) => {
    const body = { email: 'weak@example.org', password: weak }
    const answer = await refused(server, route, { body, outcome: '422 weak_password' })
    expect(answer.body.reasons).toHaveLength(reasons)
    expect((await tryLogin(server, body.email, weak)).status).toBe(401)
  })

  it('takes a password of exactly 8 characters, and one of exactly 1,024 bytes', async () => {
    for (const [email, fine] of [
      ['eight@example.org', 'q7#kZ9pw'],
      ['long@example.org', 'é'.repeat(512)],
    ] as const) {
      expect((await signUp(email, fine)).status).toBe(201)
      expect((await tryLogin(server, email, fine)).status).toBe(200)
    }
  })

  it('makes one account of many requests at once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => signUp('race@example.org')))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(11).fill(409)])
  })

  refusesOtherBodies({ server: () => server, route, body: { email: 'other@example.org', password } })
})

describe('while verification is required', () => {
  let strict: TestServer

  beforeAll(async () => {
    strict = await startAuthServer({ env: { SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true' } })
  })
  afterAll(() => strict.stop())

  it('answers a new and a taken e-mail alike and signs nobody in', async () => {
    const body = { email: 'eve@example.org', password }
    const first = await ask(strict, route, { key: null, body })
    expect([first.status, first.body]).toEqual([
      201,
      {
        user_id: null,
        email: 'eve@example.org',
        token: null,
        refresh_token: null,
        token_type: 'Bearer',
        expires_in: null,
      },
    ])
    const again = await auditsOf(strict, () =>
      ask(strict, route, { key: null, body: { ...body, password: 'another good one' } }),
    )
    expect([again.result.status, again.result.body]).toEqual([first.status, first.body])
    expect(again.types).toEqual(['auth/register'])
    expect(again.records[0]?.payload['outcome']).toBe('failure')
  })

  it('lets nobody in before the e-mail is verified, and only the first password after', async () => {
    const body = { email: 'dora@example.org', password }
    await ask(strict, route, { key: null, body })
    await ask(strict, route, { key: null, body: { ...body, password: 'another good one' } })
    expect((await tryLogin(strict, body.email, password)).body.code).toBe('email_not_verified')
    const token = await linkToken(strict, 'verify-email/send', body.email)
    await ask(strict, 'POST /v1/auth/verify-email', { key: null, body: { token } })
    expect((await tryLogin(strict, body.email, 'another good one')).status).toBe(401)
    expect((await tryLogin(strict, body.email, password)).status).toBe(200)
  })

  it('an invalid e-mail and an invalid password are refused too', async () => {
    const noEmail = { email: 'nobody', password }
    await refused(strict, route, { body: noEmail, outcome: '400 validation_failed' })
    const weak = { email: 'dora@example.org', password: 'short' }
    await refused(strict, route, { body: weak, outcome: '422 weak_password' })
  })
})

it('takes common passwords while SERVICE_AUTH_PASSWORD_BLOCKLIST is off', async () => {
  const lax = await startAuthServer({ env: { SERVICE_AUTH_PASSWORD_BLOCKLIST: 'false' } })
  try {
    await register(lax, 'lax@example.org', 'password1')
    const body = { email: 'laxer@example.org', password: 'passwor' }
    await refused(lax, route, { body, outcome: '422 weak_password' })
  } finally {
    await lax.stop()
  }
})

it('answers 503 when more passwords wait than there is room for, and registers the others', async () => {
  const emails = Array.from({ length: 400 }, (_none, at) => `crowd-${at}@example.org`)
  const answers = await Promise.all(emails.map((email) => signUp(email)))
  const refusedOnes = answers.filter(({ status }) => status !== 201)
  expect(new Set(refusedOnes.map(({ body }) => body.code))).toEqual(new Set(['overloaded']))
  expect(refusedOnes[0]?.headers.get('retry-after')).toBe('1')
  const { body } = await ask(server, 'GET /v1/auth/users?limit=1000')
  const made = body.users.filter((user: { email: string }) => user.email.startsWith('crowd-'))
  expect(made).toHaveLength(400 - refusedOnes.length)
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(registerRoutes)).toEqual([])
})

it('answers 507 while the disk is full', async () => {
  server = await restartedFull(server)
  const body = { email: 'late@example.org', password }
  await refused(server, route, { body, outcome: '507 storage_full' })
})
