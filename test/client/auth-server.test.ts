import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type AuthSession,
  NotFoundError,
  ServiceClient,
  type ServiceClientOptions,
} from '../../src/client/index.js'
import { limits } from '../../src/base/limits/limits.js'
import { linkToken, ownedAgent } from '../support/auth/accounts.js'
import { startAuthServer } from '../support/server/auth-server.js'

let server: Awaited<ReturnType<typeof startAuthServer>>
let admin: ServiceClient

const password = 'nine slow herons by the weir'

beforeAll(async () => {
  server = await startAuthServer()
  admin = new ServiceClient({ url: server.url, apiKey: server.rootKey })
})

afterAll(async () => {
  await server.stop()
})

/** A client with a newly registered user of this name. */
async function signedUp(name: string, options: Partial<ServiceClientOptions> = {}) {
  const client = new ServiceClient({ url: server.url, ...options })
  const email = `${name}@example.org`
  const { user_id } = await client.auth.register({ email, password })
  return { client, auth: client.auth, email, userId: user_id }
}

/** The current session. @throws Error if there is none */
function sessionOf({ auth }: ServiceClient): AuthSession {
  if (!auth.session) throw new Error('Expected a session')
  return auth.session
}

/** A fetch that counts refreshes and, with `losesFirst`, loses the answer of the first one. */
function watchedFetch(losesFirst = false) {
  const watched = {
    refreshes: 0,
    fetch: async (...[input, init]: Parameters<typeof fetch>) => {
      const response = await fetch(input, init)
      if (!String(input).endsWith('/refresh')) return response
      watched.refreshes += 1
      if (losesFirst && watched.refreshes === 1) throw new TypeError('lost')
      return response
    },
  }
  return watched
}

describe('accounts and sessions, against a running server', () => {
  it('register, read and change a user, refresh and sign out', async () => {
    const { client, auth, email, userId } = await signedUp('alice')
    const first = sessionOf(client)
    expect(decodeJwt(first.token)).toMatchObject({ sub: userId, email })
    expect(await auth.me()).toMatchObject({ user_id: userId, email, verified: false, user_metadata: {} })
    expect(await auth.updateUserMetadata({ name: 'Alice' })).toEqual({
      email,
      user_metadata: { name: 'Alice' },
    })
    expect((await auth.me()).user_metadata).toEqual({ name: 'Alice' })
    const refreshed = await auth.refresh()
    expect(refreshed).toMatchObject({ token_type: 'Bearer', expires_in: 3_600 })
    expect(sessionOf(client).token).toBe(refreshed.token)
    expect(decodeJwt(refreshed.token)).toMatchObject({ user_metadata: { name: 'Alice' } })
    expect(await auth.logout()).toEqual({ logged_out: true, sessions: 1 })
    expect(auth.session).toBeUndefined()
    await expect(auth.me()).rejects.toMatchObject({ status: 401, code: 'unauthorized' })
    auth.setSession({ token: refreshed.token, refresh_token: refreshed.refresh_token })
    await expect(auth.me()).rejects.toMatchObject({ status: 401, code: 'refresh_invalid' })
    expect(auth.session).toBeUndefined()
  })

  it('refuse a registered e-mail, a weak password and a wrong password', async () => {
    const { client, email } = await signedUp('bert')
    const otherDevice = new ServiceClient({ url: server.url }).auth
    await expect(otherDevice.register({ email, password })).rejects.toMatchObject({
      status: 409,
      code: 'email_exists',
    })
    const weak = otherDevice.register({ email: 'other@example.org', password: 'short' })
    await expect(weak).rejects.toMatchObject({ status: 422, code: 'weak_password' })
    const wrong = otherDevice.login({ email, password: `${password}!` })
    await expect(wrong).rejects.toMatchObject({ status: 401, code: 'invalid_credentials' })
    expect(otherDevice.session).toBeUndefined()
    await otherDevice.login({ email, password })
    expect(otherDevice.session?.token).not.toBe(sessionOf(client).token)
  })

  it('sign in from a device that has signed in before while the e-mail is locked for other devices', async () => {
    const { auth, email } = await signedUp('zoe')
    await auth.login({ email, password })
    const { deviceToken } = auth
    await auth.logout()
    const otherDevice = new ServiceClient({ url: server.url }).auth
    const guess = () => otherDevice.login({ email, password: 'not the password of anyone' })
    for (let n = 0; n < 5; n++) await expect(guess()).rejects.toMatchObject({ code: 'invalid_credentials' })
    const locked = { status: 429, code: 'account_locked' }
    await expect(otherDevice.login({ email, password })).rejects.toMatchObject(locked)
    await auth.login({ email, password })
    // The application has stored the device token before a restart.
    const restarted = new ServiceClient({ url: server.url }).auth
    restarted.deviceToken = deviceToken
    await restarted.login({ email, password })
    const change = { current_password: password, new_password: `${password} again` }
    await restarted.changePassword(change)
    await expect(otherDevice.login({ email, password })).rejects.toMatchObject(locked)
  })

  it('sign in by a magic link, once', async () => {
    const { auth } = new ServiceClient({ url: server.url })
    const { sent, token = '' } = await auth.magicLink.send('carol@example.org')
    expect(sent).toBe(false)
    expect(await auth.magicLink.verify(token)).toMatchObject({
      email: 'carol@example.org',
      token_type: 'Bearer',
    })
    expect((await auth.me()).email).toBe('carol@example.org')
    await expect(auth.magicLink.verify(token)).rejects.toMatchObject({ status: 401, code: 'invalid_token' })
  })

  it('verify an e-mail', async () => {
    const { auth, email, userId } = await signedUp('dolores')
    const { token = '' } = await auth.sendVerifyEmail(email)
    expect(await auth.verifyEmail(token)).toEqual({ verified: true, user_id: userId, email })
    expect((await auth.me()).verified).toBe(true)
    await expect(auth.verifyEmail(token)).rejects.toMatchObject({ status: 400, code: 'invalid_token' })
  })

  it('change a password, and reset a forgotten one', async () => {
    const { auth, email, userId } = await signedUp('emil')
    const change = { current_password: password, new_password: `${password} twice` }
    expect(await auth.changePassword(change)).toEqual({ changed: true })
    await expect(auth.changePassword(change)).rejects.toMatchObject({ code: 'invalid_credentials' })
    expect(await auth.requestPasswordReset(email)).toEqual({ sent: false })
    const token = await linkToken(server, 'password/reset-request', email)
    const reset = { token, password: `${password} thrice` }
    expect(await auth.resetPassword(reset)).toEqual({ reset: true, user_id: userId, email })
    await auth.login({ email, password: reset.password })
    expect((await auth.me()).user_id).toBe(userId)
  })

  it('list and end sessions', async () => {
    const { client, auth, email } = await signedUp('frieda')
    const others = [1, 2, 3].map(() => new ServiceClient({ url: server.url }))
    for (const other of others) await other.auth.login({ email, password })
    const { sessions } = await auth.sessions.list()
    expect(sessions).toHaveLength(4)
    expect(sessions.filter(({ current }) => current)).toHaveLength(1)
    const [killed, second] = others
    const { sid } = decodeJwt<{ sid: string }>(killed ? sessionOf(killed).token : '')
    expect(await auth.sessions.kill(sid)).toEqual({ ended: true, sid })
    await expect(killed?.auth.me()).rejects.toMatchObject({ status: 401 })
    expect(killed?.auth.session).toBeUndefined()
    expect(await auth.logout({ scope: 'others' })).toMatchObject({ sessions: 2 })
    await expect(second?.auth.me()).rejects.toMatchObject({ status: 401 })
    expect((await auth.me()).email).toBe(email)
    expect(sessionOf(client)).toBeDefined()
    expect(await auth.logout({ scope: 'global' })).toMatchObject({ sessions: 1 })
  })

  it('report whether sign-in is enabled, and its public keys', async () => {
    const { auth } = new ServiceClient({ url: server.url })
    expect(await auth.status()).toEqual({ enabled: true })
    expect((await auth.jwks()).keys[0]).toMatchObject({ kty: 'OKP', crv: 'Ed25519', alg: 'EdDSA' })
  })
})

describe('administration of users, against a running server', () => {
  it('lists users, sets app_metadata for the next token, and deletes users', async () => {
    const { client, auth, email, userId } = await signedUp('greta')
    expect(await admin.auth.users.setAppMetadata(email, { role: 'editor' })).toEqual({
      email,
      app_metadata: { role: 'editor' },
    })
    await auth.refresh()
    expect(decodeJwt(sessionOf(client).token)).toMatchObject({ app_metadata: { role: 'editor' } })
    const emails: string[] = []
    let cursor: string | undefined
    do {
      const page = await admin.auth.users.list({ limit: 2, cursor })
      emails.push(...page.users.map((user) => user.email))
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
    expect(emails).toContain(email)
    expect((await admin.auth.users.list()).total).toBe(emails.length)
    expect(await admin.auth.users.delete(email)).toEqual({ deleted: true, user_id: userId, email })
    await expect(admin.auth.users.delete(email)).rejects.toBeInstanceOf(NotFoundError)
    await expect(auth.me()).rejects.toMatchObject({ status: 401 })
    expect(auth.session).toBeUndefined()
  })

  it('is refused to users', async () => {
    const { auth } = await signedUp('hugo')
    await expect(auth.users.list()).rejects.toMatchObject({ status: 401 })
  })
})

describe('refreshing, against a running server', () => {
  it('happens once for fifty callers whose token was revoked', async () => {
    const watched = watchedFetch()
    const { auth } = await signedUp('ida', { fetch: watched.fetch })
    await auth.revoke()
    const answers = await Promise.all(Array.from({ length: 50 }, () => auth.me()))
    expect(new Set(answers.map(({ email }) => email))).toEqual(new Set(['ida@example.org']))
    expect(watched.refreshes).toBe(1)
  })

  it('gets the same successor when the answer was lost', async () => {
    const watched = watchedFetch(true)
    const { client, auth } = await signedUp('jan', { fetch: watched.fetch })
    const before = sessionOf(client)
    await auth.refresh()
    expect(watched.refreshes).toBe(2)
    expect(sessionOf(client).refresh_token).not.toBe(before.refresh_token)
    await auth.refresh()
    expect((await auth.me()).email).toBe('jan@example.org')
  })

  it('works for two clients that share a session', async () => {
    const { client, email } = await signedUp('kai')
    const tab = new ServiceClient({ url: server.url })
    tab.auth.setSession(sessionOf(client))
    await Promise.all([client.auth.refresh(), tab.auth.refresh()])
    expect(sessionOf(tab).refresh_token).toBe(sessionOf(client).refresh_token)
    expect((await tab.auth.me()).email).toBe(email)
  })

  it('ends the session when an old refresh token is used again', async () => {
    const { client, auth } = await signedUp('lena')
    const stolen = sessionOf(client)
    for (let times = 0; times <= limits.refreshRepeatsMax; times++) await auth.refresh()
    const thief = new ServiceClient({ url: server.url })
    thief.auth.setSession(stolen)
    await expect(thief.auth.refresh()).rejects.toMatchObject({ status: 401, code: 'refresh_reused' })
    expect(thief.auth.session).toBeUndefined()
    await expect(auth.me()).rejects.toMatchObject({ status: 401 })
    expect(auth.session).toBeUndefined()
  })
})

describe('data of a signed-in user, against a running server', () => {
  it('is written and read as the row policies of the agent allow', async () => {
    await ownedAgent(server, 'diary')
    const mia = await signedUp('mia')
    const noah = await signedUp('noah')
    const { id } = await mia.client.agent('diary').write({ owner: mia.userId, text: 'Mine' })
    expect((await mia.client.agent('diary').get(id)).data).toEqual({ owner: mia.userId, text: 'Mine' })
    await expect(noah.client.agent('diary').get(id)).rejects.toBeInstanceOf(NotFoundError)
    const forged = noah.client.agent('diary').write({ owner: mia.userId })
    await expect(forged).rejects.toMatchObject({ status: 403, code: 'forbidden' })
  })
})
