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
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import type { TestServer } from '../support/server/server.js'

/*
 * An attacker that locks an e-mail on purpose locks out only unknown clients, not devices that have signed in
 * before.
 */

const ATTEMPTS = 3
const wrong = 'not the password of anyone'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_AUTH_MAX_LOGIN_ATTEMPTS: String(ATTEMPTS) } })
})
afterAll(() => server.stop())

/** The outcome of a login from a device. */
function from(device: string | undefined, email: string, password = usualPassword): Promise<string> {
  const body = { email, password, ...(device !== undefined && { device_token: device }) }
  return outcomeOf(checkedCall(server, 'POST /v1/auth/login', { key: null, body }))
}

/** Registers a user and signs in on a device. @returns the token of the device */
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
  it('accepts repeated logins from a device that has signed in before', async () => {
    const email = 'ada@example.org'
    const device = await deviceOf(email)
    await lockOut(email)
    for (let n = 0; n < 2; n++) expect(await from(device, email)).toBe('200')
    // These logins do not unlock the e-mail for unknown clients.
    expect(await from(undefined, email)).toBe('429 account_locked')
  })

  it('accepts a password change from such a device', async () => {
    const email = 'change@example.org'
    const device = await deviceOf(email)
    const { token } = await logIn(server, { email, password: usualPassword })
    await lockOut(email)
    const body = { current_password: usualPassword, new_password: 'ten slow herons by the weir' }
    const change = (more: object) =>
      outcomeOf(
        checkedCall(server, 'POST /v1/auth/password/change', { key: token, body: { ...body, ...more } }),
      )
    expect(await change({})).toBe('429 account_locked')
    expect(await change({ device_token: device })).toBe('200')
  })

  it('stays locked for invalid device tokens and for tokens of another account', async () => {
    const email = 'bob@example.org'
    const device = await deviceOf(email)
    const others = await deviceOf('mallory@example.org')
    await lockOut(email)
    for (const other of [others, '', 'x', 'A'.repeat(94), `${device}=`, device.slice(1)]) {
      expect(await from(other, email)).toBe('429 account_locked')
    }
    expect(await from(others, 'mallory@example.org')).toBe('200')
  })
})

describe('a device', () => {
  it('has as many guesses as an unknown client, also concurrently, and then locks only itself', async () => {
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

  it('does not allow more guesses with several tokens of another account', async () => {
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

  it('is unknown after a reset of the password, and known again after the next sign-in', async () => {
    const email = 'eve@example.org'
    const device = await deviceOf(email)
    const token = await linkToken(server, 'password/reset-request', email)
    const reset = await checkedCall(server, 'POST /v1/auth/password/reset', {
      key: null,
      body: { token, password: usualPassword },
    })
    expect(reset.status).toBe(200)
    await lockOut(email)
    expect(await from(device, email)).toBe('429 account_locked')
    const link = await linkToken(server, 'magic-link/send', email)
    const byLink = await checkedCall(server, 'POST /v1/auth/magic-link/verify', {
      key: null,
      body: { token: link },
    })
    expect(await from(byLink.body.device_token, email)).toBe('200')
  })

  it('is also known by the answer to a refresh, and after a logout', async () => {
    const { email, refreshToken } = await register(server, 'fay@example.org')
    const refreshed = await checkedCall(server, 'POST /v1/auth/refresh', {
      key: null,
      body: { refresh_token: refreshToken },
    })
    await checkedCall(server, 'POST /v1/auth/logout', { key: refreshed.body.token })
    await lockOut(email)
    expect(await from(refreshed.body.device_token, email)).toBe('200')
  })

  it('is unknown after the deletion of its user', async () => {
    const email = 'gus@example.org'
    const device = await deviceOf(email)
    await from(device, email, wrong)
    expect((await checkedCall(server, `DELETE /v1/auth/users/${email}`)).status).toBe(200)
    await register(server, email)
    await lockOut(email)
    expect(await from(device, email)).toBe('429 account_locked')
  })
})
