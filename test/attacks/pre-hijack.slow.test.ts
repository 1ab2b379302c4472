import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { logIn, outcomeOf, register, tryLogin, usualPassword } from '../support/auth/accounts.js'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { freePort } from '../support/server/free-port.js'
import { addPasskey, passkeyEnv, signInBy } from '../support/auth/passkeys.js'
import type { TestServer } from '../support/server/server.js'
import { linkIn, type SmtpProcess, startSmtpProcess } from '../support/mail/smtp.js'

/*
 * Account pre-hijacking: an attacker registers with the e-mail of a victim, who confirms the mailbox
 * unsuspectingly, and waits until the victim signs in.
 */

let server: TestServer
let mails: SmtpProcess

beforeAll(async () => {
  const smtpPort = await freePort()
  mails = await startSmtpProcess(smtpPort)
  server = await startAuthServer({
    env: {
      ...passkeyEnv,
      SERVICE_MAIL_ENABLED: 'true',
      SERVICE_MAIL_SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
      SERVICE_MAIL_FROM: 'Strandfast <no-reply@service.example>',
      SERVICE_MAIL_LINK_BASE_URL: 'https://service.example',
    },
  })
})
afterAll(async () => {
  await server.stop()
  await mails.stop()
})

const post = (path: string, body: unknown) =>
  checkedCall(server, `POST /v1/auth/${path}`, { key: null, body })

/** Requests a mail and returns the token of its link; notices without a link are skipped. */
async function mailed(path: string, email: string): Promise<string> {
  expect((await post(path, { email })).body).toEqual({ sent: true })
  let mail = await mails.next()
  while (!mail.text.includes('token=')) mail = await mails.next()
  expect(mail.to).toEqual([email])
  return linkIn(mail).token
}

/** An account that an attacker registered with the e-mail of a victim, who has confirmed the mailbox. */
async function hijacked(email: string) {
  const attacker = await register(server, email)
  const passkey = await addPasskey(server, attacker.token)
  const metadata = { name: 'of the attacker' }
  await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: attacker.token, body: { metadata } })
  const token = await mailed('verify-email/send', email)
  expect((await post('verify-email', { token })).body).toMatchObject({ verified: true })
  // Until a sign-in by the mailbox, the owner of the account is not known.
  expect((await tryLogin(server, email, usualPassword)).status).toBe(200)
  return { attacker, passkey }
}

/** Expects that everything that the attacker set has been removed from the account. */
async function expectOwned(email: string, { attacker, passkey }: Awaited<ReturnType<typeof hijacked>>) {
  expect(await outcomeOf(tryLogin(server, email, usualPassword))).toBe('401 invalid_credentials')
  expect(await outcomeOf(signInBy(server, passkey))).toBe('401 passkey_failed')
  expect(await outcomeOf(checkedCall(server, 'GET /v1/auth/me', { key: attacker.token }))).toBe(
    '401 token_revoked',
  )
  const refresh = { refresh_token: attacker.refreshToken }
  expect(await outcomeOf(post('refresh', refresh))).toBe('401 refresh_invalid')
  const { body } = await checkedCall(server, 'GET /v1/auth/users')
  const shown = body.users.find((user: { email: string }) => user.email === email)
  expect(shown).toMatchObject({ user_id: attacker.userId, verified: true, user_metadata: {} })
}

it('the first magic link removes everything that an attacker set before', async () => {
  const email = 'magic@example.com'
  const planted = await hijacked(email)
  const token = await mailed('magic-link/send', email)
  expect((await post('magic-link/verify', { token })).body).toMatchObject({ email, verified: true })
  await expectOwned(email, planted)
})

it('the first password reset removes everything that an attacker set before', async () => {
  const email = 'reset@example.com'
  const planted = await hijacked(email)
  const token = await mailed('password/reset-request', email)
  const password = 'seven grey herons wait'
  expect((await post('password/reset', { token, password })).status).toBe(200)
  await expectOwned(email, planted)
  expect((await tryLogin(server, email, password)).status).toBe(200)
})

it('the attacker cannot read records of the owner of the mailbox by $jwt.verified_email', async () => {
  const email = 'policy@example.com'
  await newAgent(server, 'letters')
  const conditions = [{ field: 'to', op: 'eq', value: '$jwt.verified_email' }]
  const put = { body: { policies: [{ actions: ['read'], conditions }] } }
  expect((await checkedCall(server, 'PUT /v1/agents/letters/policies', put)).body.warnings).toEqual([])
  const written = await checkedCall(server, 'POST /v1/agents/letters/records', {
    body: { data: { to: email } },
  })
  const read = (key: string) =>
    outcomeOf(checkedCall(server, `GET /v1/agents/letters/records/${written.body.record_id}`, { key }))
  const claimsOf = (token: string) => {
    const { email_verified, verified_email } = decodeJwt(token)
    return { email_verified, verified_email }
  }

  const { attacker } = await hijacked(email)
  expect(claimsOf(attacker.token)).toEqual({ email_verified: false, verified_email: undefined })
  const { token: confirmed } = await logIn(server, attacker)
  expect(claimsOf(confirmed)).toEqual({ email_verified: true, verified_email: undefined })
  for (const token of [attacker.token, confirmed]) expect(await read(token)).toBe('404 record_not_found')

  const owner = await post('magic-link/verify', { token: await mailed('magic-link/send', email) })
  expect(claimsOf(owner.body.token)).toEqual({ email_verified: true, verified_email: email })
  expect(await read(owner.body.token)).toBe('200')
  const refresh = { refresh_token: owner.body.refresh_token }
  expect(claimsOf((await post('refresh', refresh)).body.token).verified_email).toBe(email)
})

it('later sign-ins keep everything that the owner has set since', async () => {
  const email = 'later@example.com'
  const planted = await hijacked(email)
  await post('magic-link/verify', { token: await mailed('magic-link/send', email) })
  await expectOwned(email, planted)
  const { token } = (await post('magic-link/verify', { token: await mailed('magic-link/send', email) })).body
  const passkey = await addPasskey(server, token)
  const metadata = { name: 'of the owner' }
  await checkedCall(server, 'PATCH /v1/auth/me/user-metadata', { key: token, body: { metadata } })
  const again = await post('magic-link/verify', { token: await mailed('magic-link/send', email) })
  const { body } = await checkedCall(server, 'GET /v1/auth/me', { key: again.body.token })
  expect(body.user_metadata).toEqual(metadata)
  expect((await signInBy(server, passkey)).status).toBe(200)
})
