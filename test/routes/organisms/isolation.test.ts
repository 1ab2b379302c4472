// @run through a standby
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account } from '../../support/auth/accounts.js'
import { checkedCall, headOf } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { secretKinds, triesOf } from '../../support/auth/namespace-secrets.js'
import { auditAgent, authBase, newOrganism, registerIn, type Space } from '../../support/auth/organisms.js'
import { passkeyEnv } from '../../support/auth/passkeys.js'
import type { TestServer } from '../../support/server/server.js'

const email = 'ada@example.com'
const spaces: Space[] = [undefined, 'alpha', 'beta']
const nameOf = (space: Space) => space ?? 'the root namespace'

let server: TestServer
const accounts = new Map<Space, Account>()

function accountOf(space: Space): Account {
  const account = accounts.get(space)
  if (account === undefined) throw new Error(`Expected a user of ${nameOf(space)}`)
  return account
}

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', ...passkeyEnv } })
  await newOrganism(server, 'alpha')
  await newOrganism(server, 'beta')
  // The same mailbox in every namespace, so that shared state would show.
  for (const space of spaces) accounts.set(space, await registerIn(server, space, email))
})
afterAll(() => server.stop())

/** The whole visible state of a namespace. */
async function stateOf(space: Space): Promise<unknown> {
  const base = authBase(space)
  const { token } = accountOf(space)
  const users = await checkedCall(server, `GET ${base}/users`)
  const sessions = await checkedCall(server, `GET ${base}/sessions`, { key: token })
  const me = await checkedCall(server, `GET ${base}/me`, { key: token })
  expect([users.status, sessions.status, me.status]).toEqual([200, 200, 200])
  return {
    users: users.body,
    sessions: sessions.body,
    me: me.body,
    head: await headOf(server, auditAgent(space)),
  }
}

const pairs = spaces.flatMap((from) => spaces.filter((to) => to !== from).map((to) => ({ from, to })))

describe.each(pairs.map(({ from, to }) => [nameOf(from), nameOf(to), { from, to }] as const))(
  'a credential of %s, in %s',
  (_from, _to, { from, to }) => {
    it.each(Object.entries(secretKinds))('refuses the %s, and writes nothing', async (_name, kind) => {
      const secret = await kind.take(server, from, accountOf(from))
      const before = [await stateOf(from), await stateOf(to)]
      const tries = triesOf(to, secret, accountOf(to))
      expect(tries.length).toBeGreaterThan(10)
      for (const { route, call } of tries) {
        const { status, text } = await checkedCall(server, route, call)
        expect([400, 401], `${route}: ${text}`).toContain(status)
      }
      expect([await stateOf(from), await stateOf(to)]).toEqual(before)
    })
  },
)

describe.each(spaces.map((space) => [nameOf(space), space] as const))('in %s itself', (_name, space) => {
  it.each(Object.entries(secretKinds).filter(([, { place }]) => place !== undefined))(
    'accepts the %s, so that the tests above can fail',
    async (_kind, { take, place }) => {
      const fresh = await registerIn(server, space, `fresh-${_kind.replaceAll(' ', '-')}@example.com`)
      const secret = await take(server, space, fresh)
      const [method, path] = place?.route.split(' ') ?? []
      const call = { key: null, body: place?.body(secret) ?? {} }
      const { status, text } = await checkedCall(server, `${method} ${authBase(space)}/${path}`, call)
      expect(status, text).toBe(200)
    },
  )
})

describe('a lockout', () => {
  it('applies to one e-mail in one namespace', async () => {
    const login = (space: Space, password: string) =>
      checkedCall(server, `POST ${authBase(space)}/login`, {
        key: null,
        body: { email: 'lock@example.com', password },
      })
    for (const space of spaces) await registerIn(server, space, 'lock@example.com')
    for (let failure = 0; failure < 5; failure++) await login('alpha', 'wrong')
    expect((await login('alpha', accountOf('alpha').password)).body.code).toBe('account_locked')
    for (const space of [undefined, 'beta']) {
      expect((await login(space, accountOf(space).password)).status).toBe(200)
    }
  })
})

describe('the token of a user on data routes', () => {
  const conditions = [{ field: 'owner', op: 'eq', value: '$jwt.sub' }]
  const policies = [{ actions: ['read', 'write'], conditions }]

  beforeAll(async () => {
    await checkedCall(server, 'POST /v1/agents', { body: { name: 'notes', zone: 'free' } })
    await checkedCall(server, 'POST /v1/agents', { body: { name: 'alpha', zone: 'free' } })
    for (const id of ['alpha', 'beta']) {
      await checkedCall(server, `POST /v1/organisms/${id}/agents`, { body: { name: 'notes', zone: 'free' } })
    }
    for (const agent of ['notes', 'alpha', 'alpha::notes', 'beta::notes']) {
      const set = await checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body: { policies } })
      expect(set.status, set.text).toBe(200)
    }
  })

  const agents = ['notes', 'alpha', 'alpha::notes', 'beta::notes', 'alpha::auth', 'default']
  const reached: readonly (readonly [Space, readonly string[]])[] = [
    [undefined, ['notes', 'alpha']],
    ['alpha', ['alpha::notes']],
    ['beta', ['beta::notes']],
  ]

  it.each(reached.map(([space, own]) => [nameOf(space), space, own] as const))(
    'reaches only the agents of its namespace, by their policies: %s',
    async (_name, space, own) => {
      const { token: key, userId } = accountOf(space)
      for (const agent of agents) {
        const before = await headOf(server, agent)
        const call = { key, body: { data: { owner: userId } } }
        const written = await checkedCall(server, `POST /v1/agents/${agent}/records`, call)
        const query = await checkedCall(server, `POST /v1/agents/${agent}/query`, {
          key,
          body: { type: 'latest' },
        })
        const line = JSON.stringify({ agent, data: { owner: userId } })
        const headers = { 'content-type': 'application/x-ndjson' }
        const ingested = await checkedCall(server, 'POST /v1/ingest', { key, raw: line, headers })
        if (own.includes(agent)) {
          expect([written.status, query.status, ingested.body.accepted]).toEqual([201, 200, 1])
          continue
        }
        expect([agent, written.status, query.status]).toEqual([agent, 403, 403])
        if (ingested.status === 200) expect(ingested.body.accepted, agent).toBe(0)
        expect(await headOf(server, agent)).toEqual(before)
      }
      for (const route of ['GET /v1/agents', 'GET /v1/organisms', 'GET /v1/organisms/alpha']) {
        expect((await checkedCall(server, route, { key })).status, route).toBe(403)
      }
    },
  )

  it('is revoked with its user, only in that namespace', async () => {
    const deleted = await registerIn(server, 'alpha', 'gone@example.com')
    const remaining = await registerIn(server, 'beta', 'gone@example.com')
    await checkedCall(server, 'DELETE /v1/organisms/alpha/auth/users/gone@example.com')
    const query = (key: string, agent: string) =>
      checkedCall(server, `POST /v1/agents/${agent}/query`, { key, body: { type: 'latest' } })
    expect((await query(deleted.token, 'alpha::notes')).body.code).toBe('token_revoked')
    expect((await query(remaining.token, 'beta::notes')).status).toBe(200)
  })
})
