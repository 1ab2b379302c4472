// @run through a standby
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Account } from '../../support/auth/accounts.js'
import { ask, headOf } from '../../support/http/answers.js'
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
  // The same mailbox everywhere, so that whatever were shared would show.
  for (const space of spaces) accounts.set(space, await registerIn(server, space, email))
})
afterAll(() => server.stop())

/** All that a namespace shows of itself. */
async function stateOf(space: Space): Promise<unknown> {
  const base = authBase(space)
  const { token } = accountOf(space)
  const users = await ask(server, `GET ${base}/users`)
  const sessions = await ask(server, `GET ${base}/sessions`, { key: token })
  const me = await ask(server, `GET ${base}/me`, { key: token })
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
  'of what %s gives out, in %s',
  (_from, _to, { from, to }) => {
    it.each(Object.entries(secretKinds))(
      'the %s is worth nothing, and nothing is written',
      async (_name, kind) => {
        const secret = await kind.take(server, from, accountOf(from))
        const before = [await stateOf(from), await stateOf(to)]
        const tries = triesOf(to, secret, accountOf(to))
        expect(tries.length).toBeGreaterThan(10)
        for (const { route, call } of tries) {
          const { status, text } = await ask(server, route, call)
          expect([400, 401], `${route}: ${text}`).toContain(status)
        }
        expect([await stateOf(from), await stateOf(to)]).toEqual(before)
      },
    )
  },
)

describe.each(spaces.map((space) => [nameOf(space), space] as const))('in %s itself', (_name, space) => {
  it.each(Object.entries(secretKinds).filter(([, { place }]) => place !== undefined))(
    'the %s works, so that the refusals above mean something',
    async (_kind, { take, place }) => {
      const fresh = await registerIn(server, space, `fresh-${_kind.replaceAll(' ', '-')}@example.com`)
      const secret = await take(server, space, fresh)
      const [method, path] = place?.route.split(' ') ?? []
      const call = { key: null, body: place?.body(secret) ?? {} }
      const { status, text } = await ask(server, `${method} ${authBase(space)}/${path}`, call)
      expect(status, text).toBe(200)
    },
  )
})

describe('a lockout', () => {
  it('is that of one e-mail in one namespace', async () => {
    const login = (space: Space, password: string) =>
      ask(server, `POST ${authBase(space)}/login`, {
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
    await ask(server, 'POST /v1/agents', { body: { name: 'notes', zone: 'free' } })
    await ask(server, 'POST /v1/agents', { body: { name: 'alpha', zone: 'free' } })
    for (const id of ['alpha', 'beta']) {
      await ask(server, `POST /v1/organisms/${id}/agents`, { body: { name: 'notes', zone: 'free' } })
    }
    for (const agent of ['notes', 'alpha', 'alpha::notes', 'beta::notes']) {
      const set = await ask(server, `PUT /v1/agents/${agent}/policies`, { body: { policies } })
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
    'reaches the agents of its namespace by their policies, and nothing else: %s',
    async (_name, space, own) => {
      const { token: key, userId } = accountOf(space)
      for (const agent of agents) {
        const before = await headOf(server, agent)
        const call = { key, body: { data: { owner: userId } } }
        const written = await ask(server, `POST /v1/agents/${agent}/records`, call)
        const query = await ask(server, `POST /v1/agents/${agent}/query`, { key, body: { type: 'latest' } })
        const line = JSON.stringify({ agent, data: { owner: userId } })
        const headers = { 'content-type': 'application/x-ndjson' }
        const ingested = await ask(server, 'POST /v1/ingest', { key, raw: line, headers })
        if (own.includes(agent)) {
          expect([written.status, query.status, ingested.body.accepted]).toEqual([201, 200, 1])
          continue
        }
        expect([agent, written.status, query.status]).toEqual([agent, 403, 403])
        if (ingested.status === 200) expect(ingested.body.accepted, agent).toBe(0)
        expect(await headOf(server, agent)).toEqual(before)
      }
      for (const route of ['GET /v1/agents', 'GET /v1/organisms', 'GET /v1/organisms/alpha']) {
        expect((await ask(server, route, { key })).status, route).toBe(403)
      }
    },
  )

  it('ends with its user, in that namespace only', async () => {
    const gone = await registerIn(server, 'alpha', 'gone@example.com')
    const kept = await registerIn(server, 'beta', 'gone@example.com')
    await ask(server, 'DELETE /v1/organisms/alpha/auth/users/gone@example.com')
    const asked = (key: string, agent: string) =>
      ask(server, `POST /v1/agents/${agent}/query`, { key, body: { type: 'latest' } })
    expect((await asked(gone.token, 'alpha::notes')).body.code).toBe('token_revoked')
    expect((await asked(kept.token, 'beta::notes')).status).toBe(200)
  })
})
