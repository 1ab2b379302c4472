import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Account, linkToken, logIn, outcomeOf, ownedAgent, register } from '../support/auth/accounts.js'
import { MovedClock, movedClockOptions } from '../support/faults/moved-clock.js'
import { isCaughtUp, openStream } from '../support/http/events.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * A token can outlive the refresh token of its session, for example after the settings of both lifetimes were
 * lowered. Every way to end the session ends that token too, until it has expired by itself.
 */

const DAY_MS = 86_400_000
const rightMs = Math.floor(Date.now() / 1_000) * 1_000
const newPassword = 'eleven grey cranes at dusk'

let directory: string
let clock: MovedClock
let server: TestServer
let agent = ''

async function start(expirySecs: number): Promise<void> {
  server = await startAuthServer({
    dataDir: join(directory, 'data'),
    nodeOptions: movedClockOptions,
    env: {
      ...clock.env,
      SERVICE_SHARDS: '2',
      SERVICE_AUTH_JWT_EXPIRY_SECS: `${expirySecs}`,
      SERVICE_AUTH_REFRESH_TOKEN_EXPIRY_SECS: `${expirySecs}`,
    },
  })
}

const post = (path: string, key: string | null, body: object = {}) =>
  outcomeOf(call(server, `POST /v1/auth/${path}`, { key, body }))
const write = ({ token, userId }: Pick<Account, 'token' | 'userId'>) =>
  outcomeOf(
    call(server, `POST /v1/agents/${agent}/records`, { key: token, body: { data: { owner: userId } } }),
  )

/** Each way to end the session of an account, from a newer session of it. */
const ends: Record<string, (account: Account, newer: string) => Promise<string>> = {
  'logout everywhere else': (_account, newer) => post('logout?scope=others', newer),
  'logout everywhere': (_account, newer) => post('logout?scope=global', newer),
  'logout by itself': ({ token }) => post('logout', token),
  'the end of this session': async ({ token }, newer) => {
    const { body } = await call(server, 'GET /v1/auth/sessions', { key: token })
    const sid = body.sessions.find(({ current }: { current: boolean }) => current)?.sid
    return outcomeOf(call(server, `DELETE /v1/auth/sessions/${sid}`, { key: newer }))
  },
  'logout by an administrator': ({ email }) => post(`users/${email}/logout`, server.rootKey),
  'a change of the password': ({ password }, newer) =>
    post('password/change', newer, { current_password: password, new_password: newPassword }),
  'a reset of the password': async ({ email }) => {
    const token = await linkToken(server, 'password/reset-request', email)
    return post('password/reset', null, { token, password: newPassword })
  },
  'the reuse of its first refresh token': async ({ refreshToken }) => {
    const outcome = await post('refresh', null, { refresh_token: refreshToken })
    return outcome === '401 refresh_reused' ? '200' : outcome
  },
  'the deletion of the user': ({ email }) => outcomeOf(call(server, `DELETE /v1/auth/users/${email}`)),
}

const accounts = new Map<string, Account>()

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'strandfast-sessions-'))
  clock = new MovedClock(directory, rightMs)
  await start(DAY_MS / 1_000)
  agent = await ownedAgent(server, 'diary')
  for (const name of Object.keys(ends))
    accounts.set(name, await register(server, `user-${accounts.size}@example.org`))
  await server.halt()
  await start(60)
  for (const { refreshToken } of accounts.values())
    expect(await post('refresh', null, { refresh_token: refreshToken })).toBe('200')
  clock.set(rightMs + 600_000)
})

afterAll(async () => {
  await server.halt('SIGKILL')
  clock.close()
  rmSync(directory, { recursive: true, force: true })
})

it.each(Object.entries(ends))('a token that outlived its refresh token ends by %s', async (name, end) => {
  const account = accounts.get(name)
  if (account === undefined) throw new Error('Expected an account')
  expect(await write(account)).toBe('201')
  const { token: newer } = await logIn(server, account)
  const stream = await openStream(server, `/v1/agents/${agent}/stream`, { key: account.token })
  await stream.until(isCaughtUp)
  expect(await end(account, newer)).toBe('200')
  expect(await write(account)).toBe('401 token_revoked')
  await stream.ended
})

it('such tokens stay revoked for as long as they were issued for, also over a restart', async () => {
  clock.set(rightMs + DAY_MS / 2)
  for (const [name, account] of accounts) expect(await write(account), name).toBe('401 token_revoked')
  await server.halt('SIGKILL')
  await start(60)
  for (const [name, account] of accounts) expect(await write(account), name).toBe('401 token_revoked')
})
