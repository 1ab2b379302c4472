import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { magicLinkRoutes } from '../../../src/routes/auth/magic-link.js'
import { linkToken, logIn, register, tryLogin, usualPassword } from '../../support/auth/accounts.js'
import { ask, scopedKey, unseenSuccesses } from '../../support/http/answers.js'
import { callAs } from '../../support/http/call-as.js'
import { auditsOf, refused, refusesOtherBodies, restartedFull } from '../../support/auth/auth-cases.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { eventually } from '../../support/eventually.js'
import { freePort } from '../../support/server/free-port.js'
import type { TestServer } from '../../support/server/server.js'
import { linkIn, startSmtpProcess } from '../../support/mail/smtp.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const send = 'POST /v1/auth/magic-link/send'
const verify = 'POST /v1/auth/magic-link/verify'
const tokenFor = (email: string) => linkToken(server, 'magic-link/send', email)
const use = (token: string) => ask(server, verify, { key: null, body: { token } })

describe('sending a magic link', () => {
  it('gives the token while mail is off, and writes down that a link was asked for', async () => {
    await register(server, 'ada@example.org')
    const call = { key: null, body: { email: 'Ada@example.org' } }
    const { result, types } = await auditsOf(server, () => ask(server, send, call))
    expect(result.body).toEqual({ sent: false, token: expect.stringMatching(/^[\w-]{43}$/) })
    expect(result.headers.get('cache-control')).toBe('no-store')
    expect(types).toEqual(['auth/magic_link_sent'])
  })

  it('writes nothing down at once for an e-mail that no account has', async () => {
    const call = { key: null, body: { email: 'made-up@example.org' } }
    const { result, types } = await auditsOf(server, () => ask(server, send, call))
    expect([result.status, types]).toEqual([200, []])
  })

  it('answers known and unknown e-mails alike', async () => {
    await register(server, 'known@example.org')
    for (const email of ['known@example.org', 'unknown@example.org']) {
      const { status, body } = await ask(server, send, { key: null, body: { email } })
      expect([status, Object.keys(body), body.sent]).toEqual([200, ['sent', 'token'], false])
    }
    const { body } = await ask(server, 'GET /v1/auth/users')
    expect(JSON.stringify(body)).not.toContain('unknown@example.org')
  })

  it('answers 400 with a pointer for what is no e-mail', async () => {
    const body = { email: 'nobody' }
    const answer = await refused(server, send, { body, outcome: '400 validation_failed' })
    expect(answer.body.errors).toMatchObject([{ pointer: '/email' }])
  })

  refusesOtherBodies({ server: () => server, route: send, body: { email: 'ada@example.org' } })
})

describe('using a magic link', () => {
  it('makes the account where there is none, and signs in', async () => {
    const token = await tokenFor('new@example.org')
    const { result, records, types } = await auditsOf(server, () => use(token))
    expect(result.headers.get('cache-control')).toBe('no-store')
    // The token came in an answer, so it proved no mailbox (docs/adr/0031-proof-of-a-mailbox.md).
    expect(result.body).toMatchObject({ email: 'new@example.org', verified: false })
    const claims = decodeJwt(result.body.token)
    expect(claims).toMatchObject({ sub: result.body.user_id, amr: ['otp'] })
    expect(types).toEqual(['auth/register', 'auth/magic_link_login'])
    expect(records[1]?.payload).toMatchObject({ user_id: claims.sub, sid: claims['sid'] })
  })

  it('signs in who is there already, and keeps the password, since no mailbox was proven', async () => {
    const account = await register(server, 'there@example.org')
    const { body } = await use(await tokenFor(account.email))
    expect(body.user_id).toBe(account.userId)
    expect((await logIn(server, account)).token).not.toBe('')
  })

  it('works once', async () => {
    const token = await tokenFor('once@example.org')
    expect((await use(token)).status).toBe(200)
    await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
  })

  it('answers one thing to links that are wrong, used, expired or of another kind', async () => {
    await register(server, 'kinds@example.org')
    const used = await tokenFor('kinds@example.org')
    await use(used)
    const others = [
      used,
      '',
      'x',
      'A'.repeat(43),
      `${used}=`,
      await linkToken(server, 'verify-email/send', 'kinds@example.org'),
      await linkToken(server, 'password/reset-request', 'kinds@example.org'),
    ]
    const details = new Set<string>()
    for (const token of others) {
      const { body } = await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
      details.add(body.detail)
    }
    expect(details.size).toBe(1)
  })

  it('leaves a link of another kind usable that was tried in vain', async () => {
    await register(server, 'spared@example.org')
    const token = await linkToken(server, 'verify-email/send', 'spared@example.org')
    await refused(server, verify, { body: { token }, outcome: '401 invalid_token' })
    const verified = await ask(server, 'POST /v1/auth/verify-email', { key: null, body: { token } })
    expect(verified.status).toBe(200)
  })

  refusesOtherBodies({ server: () => server, route: verify, body: { token: 'A'.repeat(43) } })
})

it('answers 401 for a link whose time is over', async () => {
  const brief = await startAuthServer({ env: { SERVICE_AUTH_MAGIC_LINK_EXPIRY_SECS: '1' } })
  try {
    const token = await linkToken(brief, 'magic-link/send', 'late@example.org')
    const overAtMs = Date.now() + 1_000
    await eventually(() => Date.now() >= overAtMs)
    await refused(brief, verify, { body: { token }, outcome: '401 invalid_token' })
  } finally {
    await brief.stop()
  }
})

it('lets no unverified user in by a token from an answer while verification is required', async () => {
  const strict = await startAuthServer({ env: { SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true' } })
  try {
    const token = await linkToken(strict, 'magic-link/send', 'ada@example.org')
    const { status, body } = await ask(strict, verify, { key: null, body: { token } })
    expect([status, body.code]).toEqual([403, 'email_not_verified'])
    expect(body).not.toHaveProperty('token')
  } finally {
    await strict.stop()
  }
})

it('answers no page of another site, and no name that leads here, with a token', async () => {
  for (const path of ['/v1/auth/magic-link/send', '/v1/auth/verify-email/send']) {
    const body = { email: 'ada@example.org' }
    for (const headers of [{ host: 'rebound.example.org' }, { 'sec-fetch-site': 'cross-site' }]) {
      const call = { path, body, headers }
      const { result, types } = await auditsOf(server, () => callAs(server, call))
      expect([result.status, result.body.code, types], path).toEqual([403, 'foreign_request', []])
      const asRoot = { ...headers, authorization: `Bearer ${server.rootKey}` }
      expect((await callAs(server, { path, body, headers: asRoot })).body.token).toMatch(/^[\w-]{43}$/)
    }
    for (const host of ['localhost:1', '[::1]', 'app.localhost'])
      expect((await callAs(server, { path, body, headers: { host } })).body.token).toMatch(/^[\w-]{43}$/)
  }
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

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(unseenSuccesses(magicLinkRoutes)).toEqual([])
})

it('answers 507 while the disk is full, and uses no link up', async () => {
  const token = await tokenFor('full@example.org')
  server = await restartedFull(server)
  await refused(server, send, { body: { email: 'full@example.org' }, outcome: '507 storage_full' })
  await refused(server, verify, { body: { token }, outcome: '507 storage_full' })
  await server.halt()
  server = await startAuthServer({ dataDir: server.dataDir })
  expect((await use(token)).status).toBe(200)
})
