import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { logIn, outcomeOf, register } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/server/free-port.js'
import { MovedClock, movedClockOptions } from '../support/faults/moved-clock.js'
import { addPasskey, passkeyEnv } from '../support/auth/passkeys.js'
import type { TestServer } from '../support/server/server.js'
import { type SmtpProcess, startSmtpProcess } from '../support/mail/smtp.js'

/*
 * A thief of a token wants permanent access: a passkey of the thief would survive a logout everywhere and a
 * new password.
 */

let directory: string
let clock: MovedClock
let nowMs: number
let server: TestServer
let mails: SmtpProcess

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-stolen-'))
  nowMs = Math.floor(Date.now() / 1_000) * 1_000
  clock = new MovedClock(directory, nowMs)
  const smtpPort = await freePort()
  mails = await startSmtpProcess(smtpPort)
  server = await startAuthServer({
    dataDir: join(directory, 'data'),
    nodeOptions: movedClockOptions,
    env: {
      ...clock.env,
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
  clock.close()
  rmSync(directory, { recursive: true, force: true })
})

const challenge = 'POST /v1/auth/passkey/register-challenge'

function pass(secs: number): void {
  nowMs += secs * 1_000
  clock.set(nowMs)
}

it('a session that is older than ten minutes cannot register a passkey, however often it is refreshed', async () => {
  const account = await register(server, 'ada@example.org')
  const signedInAt = decodeJwt(account.token)['auth_time']
  expect(signedInAt).toBe(Math.floor(nowMs / 1_000))
  pass(limits.reauthenticationSecs + 1)
  const exchanged = await checkedCall(server, 'POST /v1/auth/refresh', {
    key: null,
    body: { refresh_token: account.refreshToken },
  })
  expect(decodeJwt(exchanged.body.token)['auth_time']).toBe(signedInAt)
  for (const token of [account.token, exchanged.body.token]) {
    expect(await outcomeOf(checkedCall(server, challenge, { key: token }))).toBe(
      '401 reauthentication_required',
    )
  }
  const { token } = await logIn(server, account)
  await addPasskey(server, token)
})

it('the owner gets a mail about each added passkey', async () => {
  const { token, email } = await register(server, 'owner@example.org')
  await addPasskey(server, token)
  const isForOwner = ({ to }: { to: string[] }) => to.includes(email)
  await eventually(() => mails.mails.some(isForOwner))
  const mail = mails.mails.find(isForOwner)
  expect(mail?.subject).toBe('A passkey was added to your account at service.example')
  expect(mail?.text).toContain('https://service.example')
  expect(mail?.text).not.toContain('token=')
})
