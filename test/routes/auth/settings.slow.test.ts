import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkToken, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { auditsOf, refused } from '../../support/auth/auth-cases.js'
import { ask, scopedKey } from '../../support/http/answers.js'
import { linkIn, startSmtpProcess } from '../../support/mail/smtp.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { freePort } from '../../support/server/free-port.js'
import type { TestServer } from '../../support/server/server.js'

const signUp = 'POST /v1/auth/register'
const send = 'POST /v1/auth/magic-link/send'
const verify = 'POST /v1/auth/magic-link/verify'
const password = usualPassword
const wrong = 'not the password of anyone'

describe('while verification is required', () => {
  let strict: TestServer

  beforeAll(async () => {
    strict = await startAuthServer({
      env: { SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true', SERVICE_AUTH_PASSWORD_BLOCKLIST: 'false' },
    })
  })
  afterAll(() => strict.stop())

  it('answers a new and a taken e-mail alike and signs nobody in', async () => {
    const body = { email: 'eve@example.org', password }
    const first = await ask(strict, signUp, { key: null, body })
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
      ask(strict, signUp, { key: null, body: { ...body, password: 'another good one' } }),
    )
    expect([again.result.status, again.result.body]).toEqual([first.status, first.body])
    expect(again.types).toEqual(['auth/register'])
    expect(again.records[0]?.payload['outcome']).toBe('failure')
  })

  it('lets nobody in before the e-mail is verified, and only the first password after', async () => {
    const body = { email: 'dora@example.org', password }
    await ask(strict, signUp, { key: null, body })
    await ask(strict, signUp, { key: null, body: { ...body, password: 'another good one' } })
    expect((await tryLogin(strict, body.email, password)).body.code).toBe('email_not_verified')
    const token = await linkToken(strict, 'verify-email/send', body.email)
    await ask(strict, 'POST /v1/auth/verify-email', { key: null, body: { token } })
    expect((await tryLogin(strict, body.email, 'another good one')).status).toBe(401)
    expect((await tryLogin(strict, body.email, password)).status).toBe(200)
  })

  it('an invalid e-mail and an invalid password are refused too', async () => {
    const noEmail = { email: 'nobody', password }
    await refused(strict, signUp, { body: noEmail, outcome: '400 validation_failed' })
    const weak = { email: 'dora@example.org', password: 'short' }
    await refused(strict, signUp, { body: weak, outcome: '422 weak_password' })
  })

  it('takes common passwords where SERVICE_AUTH_PASSWORD_BLOCKLIST is off', async () => {
    await register(strict, 'lax@example.org', 'password1')
    const body = { email: 'laxer@example.org', password: 'passwor' }
    await refused(strict, signUp, { body, outcome: '422 weak_password' })
  })

  it('answers 403 to an unverified user, and only after the right password', async () => {
    const body = { email: 'ada@example.org', password }
    await ask(strict, signUp, { key: null, body })
    expect((await tryLogin(strict, body.email, wrong)).body.code).toBe('invalid_credentials')
    const refusal = await tryLogin(strict, body.email, password)
    expect([refusal.status, refusal.body.code]).toEqual([403, 'email_not_verified'])
    expect(refusal.body).not.toHaveProperty('token')
  })

  it('lets no unverified user in by a token from an answer', async () => {
    const token = await linkToken(strict, 'magic-link/send', 'linked@example.org')
    const { status, body } = await ask(strict, verify, { key: null, body: { token } })
    expect([status, body.code]).toEqual([403, 'email_not_verified'])
    expect(body).not.toHaveProperty('token')
  })
})

it.each([
  ['in production', { SERVICE_ENV: 'production' }],
  ['beyond this machine', { SERVICE_HOST: '0.0.0.0' }],
])('gives the token %s to the root key alone, and warns at the start', async (_where, env) => {
  const live = await startAuthServer({ env })
  try {
    expect(live.stderr()).toContain('answers to the root key only')
    const body = { email: 'ada@example.org' }
    const keys = [null, 'nonsense']
    keys.push((await scopedKey(live, ['admin:organisms'])).key)
    keys.push((await scopedKey(live, ['admin:*'], ['default'])).key)
    for (const route of [send, 'POST /v1/auth/verify-email/send', 'POST /v1/auth/password/reset-request']) {
      for (const key of keys) {
        expect((await ask(live, route, { key, body })).body, route).toEqual({ sent: false })
      }
      expect((await ask(live, route, { body })).body.token, route).toMatch(/^[\w-]{43}$/)
    }
  } finally {
    await live.stop()
  }
})

it('proves the mailbox when it was mailed, and drops what somebody else may have set before', async () => {
  const smtp = await startSmtpProcess(await freePort())
  const mailing = await startAuthServer({
    env: {
      SERVICE_MAIL_ENABLED: 'true',
      SERVICE_MAIL_SMTP_URL: smtp.url,
      SERVICE_MAIL_FROM: 'no-reply@example.org',
      SERVICE_MAIL_LINK_BASE_URL: 'http://127.0.0.1:1',
    },
  })
  try {
    const squatter = await register(mailing, 'owner@example.org')
    const sent = await ask(mailing, send, { key: null, body: { email: squatter.email } })
    expect(sent.body).toEqual({ sent: true })
    const rootSent = await ask(mailing, send, { body: { email: 'other@example.org' } })
    expect(rootSent.body).toEqual({ sent: true })
    const first = await smtp.next()
    expect(first.to).toEqual([squatter.email])
    const { token } = linkIn(first)
    const { body } = await ask(mailing, verify, { key: null, body: { token } })
    expect(body).toMatchObject({ user_id: squatter.userId, verified: true })
    expect((await tryLogin(mailing, squatter.email, usualPassword)).body.code).toBe('invalid_credentials')
    const ended = await ask(mailing, 'GET /v1/auth/me', { key: squatter.token })
    expect([ended.status, ended.body.code]).toEqual([401, 'token_revoked'])
    expect((await ask(mailing, 'GET /v1/auth/me', { key: body.token })).body.verified).toBe(true)
    const { body: listed } = await ask(mailing, 'GET /v1/auth/users?prefix=owner')
    expect(listed.users).toMatchObject([{ email: squatter.email, mailbox_proven: true }])
  } finally {
    await mailing.stop()
    await smtp.stop()
  }
})
