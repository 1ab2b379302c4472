import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { linkToken, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { auditsOf, refused } from '../../support/auth/auth-cases.js'
import { checkedCall, scopedKey } from '../../support/http/answers.js'
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

  it('gives the same answer for a new and a taken e-mail, without signing in', async () => {
    const body = { email: 'eve@example.org', password }
    const first = await checkedCall(strict, signUp, { key: null, body })
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
      checkedCall(strict, signUp, { key: null, body: { ...body, password: 'another good one' } }),
    )
    expect([again.result.status, again.result.body]).toEqual([first.status, first.body])
    expect(again.types).toEqual(['auth/register'])
    expect(again.records[0]?.payload['outcome']).toBe('failure')
  })

  it('refuses logins before the e-mail is verified, and after that accepts only the first password', async () => {
    const body = { email: 'dora@example.org', password }
    await checkedCall(strict, signUp, { key: null, body })
    await checkedCall(strict, signUp, { key: null, body: { ...body, password: 'another good one' } })
    expect((await tryLogin(strict, body.email, password)).body.code).toBe('email_not_verified')
    const token = await linkToken(strict, 'verify-email/send', body.email)
    await checkedCall(strict, 'POST /v1/auth/verify-email', { key: null, body: { token } })
    expect((await tryLogin(strict, body.email, 'another good one')).status).toBe(401)
    expect((await tryLogin(strict, body.email, password)).status).toBe(200)
  })

  it('refuses an invalid e-mail and an invalid password', async () => {
    const noEmail = { email: 'absent', password }
    await refused(strict, signUp, { body: noEmail, outcome: '400 validation_failed' })
    const weak = { email: 'dora@example.org', password: 'short' }
    await refused(strict, signUp, { body: weak, outcome: '422 weak_password' })
  })

  it('accepts common passwords if SERVICE_AUTH_PASSWORD_BLOCKLIST is off', async () => {
    await register(strict, 'lax@example.org', 'password1')
    const body = { email: 'laxer@example.org', password: 'passwor' }
    await refused(strict, signUp, { body, outcome: '422 weak_password' })
  })

  it('answers 403 to an unverified user, and only after the right password', async () => {
    const body = { email: 'ada@example.org', password }
    await checkedCall(strict, signUp, { key: null, body })
    expect((await tryLogin(strict, body.email, wrong)).body.code).toBe('invalid_credentials')
    const refusal = await tryLogin(strict, body.email, password)
    expect([refusal.status, refusal.body.code]).toEqual([403, 'email_not_verified'])
    expect(refusal.body).not.toHaveProperty('token')
  })

  it('does not sign in an unverified user with a token from an answer', async () => {
    const token = await linkToken(strict, 'magic-link/send', 'linked@example.org')
    const { status, body } = await checkedCall(strict, verify, { key: null, body: { token } })
    expect([status, body.code]).toEqual([403, 'email_not_verified'])
    expect(body).not.toHaveProperty('token')
  })
})

it.each([
  ['in production', { SERVICE_ENV: 'production' }],
  ['beyond this machine', { SERVICE_HOST: '0.0.0.0' }],
])('returns the token %s only to the root key, and warns at the start', async (_where, env) => {
  const live = await startAuthServer({ env })
  try {
    expect(live.stderr()).toContain('only answers to the root key contain the tokens')
    const body = { email: 'ada@example.org' }
    const keys = [null, 'nonsense']
    keys.push((await scopedKey(live, ['admin:organisms'])).key)
    keys.push((await scopedKey(live, ['admin:*'], ['default'])).key)
    for (const route of [send, 'POST /v1/auth/verify-email/send', 'POST /v1/auth/password/reset-request']) {
      for (const key of keys) {
        expect((await checkedCall(live, route, { key, body })).body, route).toEqual({ sent: false })
      }
      expect((await checkedCall(live, route, { body })).body.token, route).toMatch(/^[\w-]{43}$/)
    }
  } finally {
    await live.stop()
  }
})

it('proves the mailbox if the link was mailed, and removes credentials that another person may have set before', async () => {
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
    const sent = await checkedCall(mailing, send, { key: null, body: { email: squatter.email } })
    expect(sent.body).toEqual({ sent: true })
    const rootSent = await checkedCall(mailing, send, { body: { email: 'other@example.org' } })
    expect(rootSent.body).toEqual({ sent: true })
    const first = await smtp.next()
    expect(first.to).toEqual([squatter.email])
    const { token } = linkIn(first)
    const { body } = await checkedCall(mailing, verify, { key: null, body: { token } })
    expect(body).toMatchObject({ user_id: squatter.userId, verified: true })
    expect((await tryLogin(mailing, squatter.email, usualPassword)).body.code).toBe('invalid_credentials')
    const ended = await checkedCall(mailing, 'GET /v1/auth/me', { key: squatter.token })
    expect([ended.status, ended.body.code]).toEqual([401, 'token_revoked'])
    expect((await checkedCall(mailing, 'GET /v1/auth/me', { key: body.token })).body.verified).toBe(true)
    const { body: listed } = await checkedCall(mailing, 'GET /v1/auth/users?prefix=owner')
    expect(listed.users).toMatchObject([{ email: squatter.email, mailbox_proven: true }])
  } finally {
    await mailing.stop()
    await smtp.stop()
  }
})
