import { execFileSync } from 'node:child_process'
import type { Browser } from 'playwright-core'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { mailPageRoutes } from '../../src/front/routes/mail-pages.js'
import { limits } from '../../src/base/limits/limits.js'
import { tally, tryLogin, usualPassword } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { sharedBrowser, noBrowser } from '../support/http/browser.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/server/free-port.js'
import type { TestServer } from '../support/server/server.js'
import { linkIn, type SmtpProcess, startSmtpProcess } from '../support/mail/smtp.js'

let smtp: SmtpProcess | undefined
let smtpPort: number
let server: TestServer

const post = (path: string, body: unknown) =>
  checkedCall(server, `POST /v1/auth/${path}`, { key: null, body })

function mailEnv(base: string): Record<string, string> {
  return {
    SERVICE_AUTH_REQUIRE_EMAIL_VERIFY: 'true',
    SERVICE_MAIL_ENABLED: 'true',
    SERVICE_MAIL_SMTP_URL: `smtp://127.0.0.1:${smtpPort}`,
    SERVICE_MAIL_FROM: 'Strandfast <no-reply@service.example>',
    SERVICE_MAIL_LINK_BASE_URL: base,
  }
}

async function mailServer(): Promise<SmtpProcess> {
  smtp ??= await startSmtpProcess(smtpPort)
  return smtp
}

beforeEach(async () => {
  smtpPort = await freePort()
  const port = await freePort()
  const env = { ...mailEnv(`http://127.0.0.1:${port}`), SERVICE_PORT: String(port) }
  server = await startAuthServer({ env })
})

afterEach(async () => {
  await server.stop()
  await smtp?.stop()
  smtp = undefined
})

describe('mails of the auth add-on', () => {
  it('verify an address by the mailed token, and no sign-in is possible before', async () => {
    const mails = await mailServer()
    const email = 'ada@example.com'
    const registered = await post('register', { email, password: usualPassword })
    expect(registered.body).toMatchObject({ token: null, refresh_token: null })
    expect((await tryLogin(server, email, usualPassword)).body.code).toBe('email_not_verified')
    expect((await tryLogin(server, email, 'some other password')).body.code).toBe('invalid_credentials')
    const mail = await mails.next()
    expect(mail.to).toEqual([email])
    const { token } = linkIn(mail)
    expect((await post('verify-email', { token })).body).toMatchObject({ verified: true, email })
    expect((await tryLogin(server, email, usualPassword)).status).toBe(200)
  })

  it('inform the owner of a registered e-mail, while the answer is the same as for a new one', async () => {
    const mails = await mailServer()
    const email = 'owner@example.com'
    const first = await post('register', { email, password: usualPassword })
    await mails.next()
    const second = await post('register', { email, password: 'quite another password' })
    expect({ status: second.status, body: second.body }).toEqual({ status: first.status, body: first.body })
    expect(await mails.next()).toMatchObject({ to: [email], subject: expect.stringContaining('already') })
    expect((await tryLogin(server, email, 'quite another password')).body.code).toBe('invalid_credentials')
  })

  it('contain a link that signs in and creates the account; no answer contains the link', async () => {
    const mails = await mailServer()
    const sent = await post('magic-link/send', { email: 'new@example.com' })
    expect(sent.body).toEqual({ sent: true })
    const { token } = linkIn(await mails.next())
    const verified = await post('magic-link/verify', { token })
    expect(verified.body).toMatchObject({ email: 'new@example.com', verified: true })
    expect((await post('magic-link/verify', { token })).status).toBe(401)
  })

  it('contain a link that resets a password and ends every session', async () => {
    const mails = await mailServer()
    const email = 'forgetful@example.com'
    await post('register', { email, password: usualPassword })
    await post('verify-email', { token: linkIn(await mails.next()).token })
    const { body } = await tryLogin(server, email, usualPassword)
    expect((await post('password/reset-request', { email })).body).toEqual({ sent: true })
    expect((await post('password/reset-request', { email: 'unknown@example.com' })).body).toEqual({
      sent: true,
    })
    const { token } = linkIn(await mails.next())
    expect((await post('password/reset', { token, password: 'a fresh long password' })).body.reset).toBe(true)
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: body.token })).body.code).toBe(
      'token_revoked',
    )
    expect((await post('refresh', { refresh_token: body.refresh_token })).body.code).toBe('refresh_invalid')
    expect((await tryLogin(server, email, 'a fresh long password')).status).toBe(200)
    expect(mails.mails.flatMap(({ to }) => to)).not.toContain('unknown@example.com')
  })

  it('are limited for each mailbox, and links that were sent before stay valid', async () => {
    const mails = await mailServer()
    const email = 'flooded@example.com'
    await post('register', { email, password: usualPassword })
    await mails.next()
    await post('magic-link/send', { email })
    const { token } = linkIn(await mails.next())
    const flood = ['magic-link/send', 'verify-email/send', 'password/reset-request', 'register'].flatMap(
      (path) => Array.from({ length: 20 }, () => ({ path, password: usualPassword })),
    )
    const answers = await Promise.all(
      flood.map(({ path, password }) => post(path, path === 'register' ? { email, password } : { email })),
    )
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 201]))
    // Mails are sent one after another, so a mail to another address arrives last.
    await post('magic-link/send', { email: 'other@example.com' })
    await eventually(() => mails.mails.at(-1)?.to[0] === 'other@example.com')
    const subjects = mails.mails.filter(({ to }) => to[0] === email).map(({ subject }) => subject)
    expect(new Set(Object.values(tally(subjects)))).toEqual(new Set([limits.mailsPerKindMax]))
    expect(new Set(subjects).size).toBe(4)
    expect((await post('magic-link/verify', { token })).body).toMatchObject({ email, verified: true })
  })

  it('are sent after a kill of the server, when the mail server becomes available', async () => {
    const email = 'patient@example.com'
    // There is no mail server yet.
    expect((await post('magic-link/send', { email })).body).toEqual({ sent: true })
    const { dataDir } = server
    await server.halt('SIGKILL')
    const mails = await mailServer()
    const port = new URL(server.url).port
    const env = { ...mailEnv(server.url), SERVICE_PORT: port }
    server = await startAuthServer({ dataDir, env })
    const { token } = linkIn(await mails.next())
    expect(occurrences(dataDir, token)).toBe(0)
    expect((await post('magic-link/verify', { token })).body).toMatchObject({ email, verified: true })
  })
})

describe.skipIf(noBrowser)('the pages behind mailed links', () => {
  let browser: Browser

  beforeAll(async () => {
    browser = await sharedBrowser()
  })

  it('consume nothing when opened, and post the token by their button', async () => {
    const mails = await mailServer()
    const email = 'browser@example.com'
    await post('register', { email, password: usualPassword })
    const { url } = linkIn(await mails.next())
    expect(url.href.startsWith(`${server.url}/verify-email?token=`)).toBe(true)
    // A mail scanner opens links.
    for (let count = 0; count < 3; count++) expect((await fetch(url)).status).toBe(200)
    const page = await browser.newPage()
    await page.goto(url.href)
    expect(page.url()).toBe(`${server.url}/verify-email`)
    await page.getByRole('button').click()
    await page.getByText('Your address is confirmed.').waitFor()
    expect((await tryLogin(server, email, usualPassword)).status).toBe(200)
    await page.close()
  })

  it('set a new password and explain why a password is refused', async () => {
    const mails = await mailServer()
    const email = 'reset@example.com'
    await post('register', { email, password: usualPassword })
    await post('verify-email', { token: linkIn(await mails.next()).token })
    await post('password/reset-request', { email })
    const page = await browser.newPage()
    await page.goto(linkIn(await mails.next()).url.href)
    await page.getByLabel('New password').fill('password1')
    await page.getByRole('button').click()
    await page.getByText('list of common ones').waitFor()
    await page.getByLabel('New password').fill('seven grey herons wait')
    await page.getByRole('button').click()
    await page.getByText('Your password is set').waitFor()
    expect((await tryLogin(server, email, 'seven grey herons wait')).status).toBe(200)
    await page.close()
  })

  it('show the token of a magic link, and load nothing from other hosts', async () => {
    const mails = await mailServer()
    await post('magic-link/send', { email: 'magic@example.com' })
    const page = await browser.newPage()
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    await page.goto(linkIn(await mails.next()).url.href)
    await page.getByRole('button').click()
    const token = await page.getByLabel('Access token').inputValue()
    expect((await checkedCall(server, 'GET /v1/auth/me', { key: token })).body.email).toBe(
      'magic@example.com',
    )
    expect(requested.filter((url) => !url.startsWith(server.url))).toEqual([])
    await page.close()
  })

  it('are all covered by this test', () => {
    expect(mailPageRoutes.map(({ path }) => path)).toEqual([
      '/magic-link',
      '/verify-email',
      '/reset-password',
    ])
  })
})

/** Number of files below a directory that contain a text in clear. */
function occurrences(directory: string, text: string): number {
  try {
    return execFileSync('grep', ['-rlaF', text, directory], { encoding: 'utf8' }).trim().split('\n').length
  } catch {
    // grep exits 1 if it finds nothing.
    return 0
  }
}
