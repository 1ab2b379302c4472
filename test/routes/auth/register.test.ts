import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerRoutes } from '../../../src/front/routes/auth/register.js'
import { tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { checkedCall, untestedSuccesses } from '../../support/http/answers.js'
import { auditsOf, refused, refusesInvalidBodies } from '../../support/auth/auth-cases.js'
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
  checkedCall(server, route, { key: null, body: { email, password: chosen } })

describe('registering', () => {
  it('creates an account that is signed in and not verified, and is recorded', async () => {
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
    const me = await checkedCall(server, 'GET /v1/auth/me', { key: token })
    expect(me.body).toMatchObject({ user_id, email, verified: false })
    expect((await tryLogin(server, email, password)).status).toBe(200)
  })

  it('recognizes all spellings of one mailbox', async () => {
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

  it('does not change an existing account with the e-mail', async () => {
    await signUp('owner@example.org')
    const body = { email: 'owner@example.org', password: 'of another person entirely' }
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

  it('accepts a password of exactly 8 characters, and one of exactly 1,024 bytes', async () => {
    for (const [email, fine] of [
      ['eight@example.org', 'q7#kZ9pw'],
      ['long@example.org', 'é'.repeat(512)],
    ] as const) {
      expect((await signUp(email, fine)).status).toBe(201)
      expect((await tryLogin(server, email, fine)).status).toBe(200)
    }
  })

  it('creates one account for concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => signUp('race@example.org')))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...Array(11).fill(409)])
  })

  refusesInvalidBodies({ server: () => server, route, body: { email: 'other@example.org', password } })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(registerRoutes)).toEqual([])
})
