import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  linkToken,
  logIn,
  outcomeOf,
  register,
  tally,
  tryLogin,
  usualPassword,
} from '../support/auth/accounts.js'
import { ask } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'

/* A stranger who locks an e-mail on purpose keeps strangers out, and no device that has signed in before. */

const ATTEMPTS = 3
const wrong = 'not the password of anyone'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: String(ATTEMPTS) } })
})
afterAll(() => server.stop())

/** How a login from a device went. */
function from(device: string | undefined, email: string, password = usualPassword): Promise<string> {
  const body = { email, password, ...(device !== undefined && { device_token: device }) }
  return outcomeOf(ask(server, 'POST /v1/auth/login', { key: null, body }))
}

/** Registers a user, signs in on a device of the user's, and gives the token of that device. */
async function deviceOf(email: string): Promise<string> {
  const account = await register(server, email)
  const { body } = await tryLogin(server, account.email, account.password)
  expect(body.device_token).toMatch(/^[\w-]{94}$/)
  return body.device_token
}

async function lockOut(email: string): Promise<void> {
  for (let n = 0; n < ATTEMPTS; n++)
    expect(await from(undefined, email, wrong)).toBe('401 invalid_credentials')
  expect(await from(undefined, email)).toBe('429 account_locked')
}

describe('a locked e-mail', () => {
  it('is open to a device that has signed in before, again and again', async () => {
    const email = 'ada@example.org'
    const device = await deviceOf(email)
    await lockOut(email)
    for (let n = 0; n < 2; n++) expect(await from(device, email)).toBe('200')
    // Who came in so has opened it for nobody else.
    expect(await from(undefined, email)).toBe('429 account_locked')
  })

  it('lets a password be changed from such a device', async () => {
    const email = 'change@example.org'
    const device = await deviceOf(email)
    const { token } = await logIn(server, { email, password: usualPassword })
    await lockOut(email)
    const body = { current_password: usualPassword, new_password: 'ten slow herons by the weir' }
    const change = (more: object) =>
      outcomeOf(ask(server, 'POST /v1/auth/password/change', { key: token, body: { ...body, ...more } }))
    expect(await change({})).toBe('429 account_locked')
    expect(await change({ device_token: device })).toBe('200')
  })

  it('stays locked for tokens that are none, of another account, or of another namespace', async () => {
    const email = 'bob@example.org'
    const device = await deviceOf(email)
    const others = await deviceOf('mallory@example.org')
    await lockOut(email)
    for (const made of [others, '', 'x', 'A'.repeat(94), `${device}=`, device.slice(1)]) {
      expect(await from(made, email)).toBe('429 account_locked')
    }
    expect(await from(others, 'mallory@example.org')).toBe('200')
  })
})

describe('a device', () => {
  it('has as many guesses as a stranger, at once or one by one, and then locks itself alone', async () => {
    const email = 'cat@example.org'
    const device = await deviceOf(email)
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => from(device, email, wrong)))
    expect(tally(outcomes)).toEqual({
      '401 invalid_credentials': ATTEMPTS,
      '429 account_locked': 20 - ATTEMPTS,
    })
    expect(await from(device, email)).toBe('429 account_locked')
    expect(await from(undefined, email)).toBe('200')
  })

  it('gives nobody more guesses by many tokens of other accounts', async () => {
    const email = 'dan@example.org'
    await register(server, email)
    const mine = await deviceOf('mallory2@example.org')
    const { body } = await tryLogin(server, 'mallory2@example.org', usualPassword)
    const tokens = [mine, body.device_token]
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_none, n) => from(tokens[n % 2], email, wrong)),
    )
    expect(tally(outcomes)).toEqual({
      '401 invalid_credentials': ATTEMPTS,
      '429 account_locked': 20 - ATTEMPTS,
    })
  })

  it('is a stranger after a reset of the password, and known again after the next sign-in', async () => {
    const email = 'eve@example.org'
    const device = await deviceOf(email)
    const token = await linkToken(server, 'password/reset-request', email)
    const reset = await ask(server, 'POST /v1/auth/password/reset', {
      key: null,
      body: { token, password: usualPassword },
    })
    expect(reset.status).toBe(200)
    await lockOut(email)
    expect(await from(device, email)).toBe('429 account_locked')
    const link = await linkToken(server, 'magic-link/send', email)
    const byLink = await ask(server, 'POST /v1/auth/magic-link/verify', { key: null, body: { token: link } })
    expect(await from(byLink.body.device_token, email)).toBe('200')
  })

  it('is known by the answer to a refresh too, and after a logout', async () => {
    const { email, refreshToken } = await register(server, 'fay@example.org')
    const refreshed = await ask(server, 'POST /v1/auth/refresh', {
      key: null,
      body: { refresh_token: refreshToken },
    })
    await ask(server, 'POST /v1/auth/logout', { key: refreshed.body.token })
    await lockOut(email)
    expect(await from(refreshed.body.device_token, email)).toBe('200')
  })

  it('is forgotten with its user', async () => {
    const email = 'gus@example.org'
    const device = await deviceOf(email)
    await from(device, email, wrong)
    expect((await ask(server, `DELETE /v1/auth/users/${email}`)).status).toBe(200)
    await register(server, email)
    await lockOut(email)
    expect(await from(device, email)).toBe('429 account_locked')
  })
})
