import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Account, linkToken, logIn, outcomeOf, ownedAgent, register } from '../support/auth/accounts.js'
import { checkedCall } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { isCaughtUp, openStream, type TestStream } from '../support/http/events.js'
import type { TestServer } from '../support/server/server.js'

/*
 * A revoked token is refused immediately on auth routes and data routes, closes open streams, and is still
 * refused after a restart (docs/SECURITY.md, Threats, and what is done about them).
 */

let server: TestServer
let agent = ''
let accounts = 0

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
  agent = await ownedAgent(server, 'diary')
})
afterAll(() => server.stop())

const newAccount = () => register(server, `user-${accounts++}@example.org`)

/** The outcomes of requests with a token to auth routes and data routes. */
function outcomesWith(on: TestServer, token: string, owner: string): Promise<string[]> {
  const body = { data: { owner } }
  const query = { type: 'latest' }
  return Promise.all([
    outcomeOf(checkedCall(on, 'GET /v1/auth/me', { key: token })),
    outcomeOf(checkedCall(on, 'GET /v1/auth/sessions', { key: token })),
    outcomeOf(checkedCall(on, `POST /v1/agents/${agent}/records`, { key: token, body })),
    outcomeOf(checkedCall(on, `POST /v1/agents/${agent}/query`, { key: token, body: query })),
    outcomeOf(checkedCall(on, `POST /v1/ingest/${agent}`, { key: token, body: { owner } })),
    outcomeOf(checkedCall(on, 'POST /v1/stream/tickets', { key: token })),
  ])
}

const works = ['200', '200', '201', '200', '201', '201']
const revoked = Array.from(works, () => '401 token_revoked')

/** Every kind of stream that a user can have open. */
async function openAll(token: string): Promise<TestStream[]> {
  const ticket = await checkedCall(server, 'POST /v1/stream/tickets', { key: token })
  const streams = await Promise.all([
    openStream(server, `/v1/agents/${agent}/stream`, { key: token }),
    openStream(server, `/v1/agents/${agent}/stream?since=0`, { key: token }),
    openStream(server, `/v1/stream?agents=${agent}`, { key: token }),
    openStream(server, `/v1/agents/${agent}/stream?ticket=${ticket.body.ticket}`, { key: null }),
  ])
  await Promise.all(streams.map((stream) => stream.until(isCaughtUp)))
  return streams
}

const newPassword = 'eleven grey cranes at dusk'

/** All actions that end tokens, and whether the session of the token continues. */
const ends: {
  name: string
  end: (account: Account, token: string) => Promise<string>
  sessionContinues?: true
}[] = [
  {
    name: 'revoked',
    end: (_account, token) => outcomeOf(checkedCall(server, 'POST /v1/auth/revoke', { key: token })),
    sessionContinues: true,
  },
  {
    name: 'whose session has logged out',
    end: (_account, token) => outcomeOf(checkedCall(server, 'POST /v1/auth/logout', { key: token })),
  },
  {
    name: 'whose user has logged out everywhere',
    end: async (account) => {
      const { token } = await logIn(server, account)
      return outcomeOf(checkedCall(server, 'POST /v1/auth/logout?scope=global', { key: token }))
    },
  },
  {
    name: 'whose user has logged out everywhere else',
    end: async (account) => {
      const { token } = await logIn(server, account)
      return outcomeOf(checkedCall(server, 'POST /v1/auth/logout?scope=others', { key: token }))
    },
  },
  {
    name: 'whose session was ended from another',
    end: async (account, ended) => {
      const { token } = await logIn(server, account)
      const { body } = await checkedCall(server, 'GET /v1/auth/sessions', { key: ended })
      const sid = body.sessions.find(({ current }: { current: boolean }) => current).sid
      return outcomeOf(checkedCall(server, `DELETE /v1/auth/sessions/${sid}`, { key: token }))
    },
  },
  {
    name: 'whose user was deleted',
    end: ({ email }) => outcomeOf(checkedCall(server, `DELETE /v1/auth/users/${email}`)),
  },
  {
    name: 'whose password was reset',
    end: async ({ email }) => {
      const body = { token: await linkToken(server, 'password/reset-request', email), password: newPassword }
      return outcomeOf(checkedCall(server, 'POST /v1/auth/password/reset', { key: null, body }))
    },
  },
  {
    name: 'whose password was changed in another session',
    end: async (account) => {
      const { token } = await logIn(server, account)
      const body = { current_password: account.password, new_password: newPassword }
      return outcomeOf(checkedCall(server, 'POST /v1/auth/password/change', { key: token, body }))
    },
  },
]

/** Tokens that were ended by the tests, to be tried again after a restart. */
const ended: { name: string; token: string; owner: string }[] = []

describe('a token', () => {
  it.each(ends.map((one) => [one.name, one] as const))(
    'is refused immediately, and its streams end: %s',
    async (name, { end, sessionContinues }) => {
      const account = await newAccount()
      const { token, refreshToken } = await logIn(server, account)
      const bystander = await newAccount()
      expect(await outcomesWith(server, token, account.userId)).toEqual(works)
      const unused = await checkedCall(server, 'POST /v1/stream/tickets', { key: token })
      const streams = await openAll(token)
      const others = await openAll(bystander.token)
      const byKey = await openStream(server, `/v1/agents/${agent}/stream`)
      expect(await end(account, token)).toBe('200')
      expect(await outcomesWith(server, token, account.userId)).toEqual(revoked)
      const ticketed = `GET /v1/agents/${agent}/stream?ticket=${unused.body.ticket}`
      expect(await outcomeOf(checkedCall(server, ticketed, { key: null }))).toBe('401 token_revoked')
      await Promise.all(streams.map((stream) => stream.ended))
      const refresh = checkedCall(server, 'POST /v1/auth/refresh', {
        key: null,
        body: { refresh_token: refreshToken },
      })
      expect(await outcomeOf(refresh)).toBe(sessionContinues ? '200' : '401 refresh_invalid')
      expect(await outcomesWith(server, bystander.token, bystander.userId)).toEqual(works)
      const arrived = (owner: string) => (stream: TestStream) =>
        stream.until((events) => events.some(({ data }) => data?.payload?.owner === owner))
      await Promise.all([byKey, ...others].map(arrived(bystander.userId)))
      for (const stream of [byKey, ...others]) stream.close()
      ended.push({ name, token, owner: account.userId })
    },
  )

  it('receives no record on its streams that was written after it was revoked', async () => {
    const account = await newAccount()
    const streams = await openAll(account.token)
    const write = (n: number) =>
      checkedCall(server, `POST /v1/agents/${agent}/records`, {
        body: { data: { owner: account.userId, n } },
      })
    const before = Array.from({ length: 50 }, (_none, n) => write(n))
    await checkedCall(server, 'POST /v1/auth/revoke', { key: account.token })
    const after = Array.from({ length: 50 }, (_none, n) => write(1_000 + n))
    await Promise.all([...before, ...after, ...streams.map((stream) => stream.ended)])
    const late = streams.flatMap(({ events }) => events.filter(({ data }) => data?.payload?.n >= 1_000))
    expect(late).toEqual([])
  })

  it('is still refused after a restart and after a crash', async () => {
    const survivor = await newAccount()
    expect(ended).toHaveLength(ends.length)
    const { dataDir } = server
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await server.halt(signal)
      server = await startAuthServer({ dataDir, env: { SERVICE_SHARDS: '3' } })
      for (const { name, token, owner } of ended) {
        expect(await outcomesWith(server, token, owner), name).toEqual(revoked)
      }
      expect(await outcomesWith(server, survivor.token, survivor.userId)).toEqual(works)
    }
  })

  it('stays revoked when its user registers again with the same e-mail', async () => {
    const account = await newAccount()
    await checkedCall(server, `DELETE /v1/auth/users/${account.email}`)
    const again = await register(server, account.email)
    expect(again.userId).not.toBe(account.userId)
    expect(await outcomesWith(server, account.token, account.userId)).toEqual(revoked)
    expect(await outcomesWith(server, again.token, again.userId)).toEqual(works)
  })
})

describe('a token that expires', () => {
  let short: TestServer
  beforeAll(async () => {
    short = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_AUTH_JWT_EXPIRY_SECS: '2' } })
  })
  afterAll(() => short.stop())

  it('closes its streams and is refused afterwards; a refreshed token can open them again', async () => {
    await ownedAgent(short, agent)
    const { token, refreshToken, userId } = await register(short, 'short@example.org')
    const open = (path: string, key: string) => openStream(short, path, { key })
    const streams = await Promise.all([
      open(`/v1/agents/${agent}/stream`, token),
      open(`/v1/stream?agents=${agent}`, token),
    ])
    const byKey = await open(`/v1/agents/${agent}/stream`, short.rootKey)
    await Promise.all(streams.map((stream) => stream.ended))
    for (const stream of streams) expect(isCaughtUp(stream.events)).toBe(true)
    expect(new Set(await outcomesWith(short, token, userId))).toEqual(new Set(['401 token_expired']))
    const body = { refresh_token: refreshToken }
    const fresh = await checkedCall(short, 'POST /v1/auth/refresh', { key: null, body })
    expect(fresh.status).toBe(200)
    const again = await open(`/v1/agents/${agent}/stream`, fresh.body.token)
    await again.until(isCaughtUp)
    const data = { owner: userId }
    await checkedCall(short, `POST /v1/agents/${agent}/records`, { body: { data } })
    await byKey.until((events) => events.some(({ event }) => event === 'record'))
    for (const stream of [again, byKey]) stream.close()
  })
})

afterEach(() => {
  expect(server.stderr()).toBe('')
})
