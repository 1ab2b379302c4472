import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { whoamiRoute } from '../../src/front/routes/whoami.js'
import { checkedCall, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { eventually } from '../support/eventually.js'
import { call, testRootKey, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer()
})
afterAll(() => server.stop())

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

function whoAmI(authorization: string, on: TestServer = server) {
  return checkedCall(on, 'GET /v1/whoami', { key: null, headers: { authorization } })
}

describe('the principal of a credential', () => {
  it('is shown for the root key, for scoped keys and for users', async () => {
    const { body: root } = await whoAmI(`Bearer ${testRootKey}`)
    expect(root).toMatchObject({ principal: 'root', kind: 'root', scopes: ['admin:*'], agents: [] })
    const { key, key_id } = await scopedKey(server, ['ingest', 'records:read'], ['a*'])
    const { body: scoped } = await whoAmI(`Bearer ${key}`)
    expect(scoped).toMatchObject({
      principal: key_id,
      kind: 'api_key',
      scopes: ['records:read', 'ingest'],
      agents: ['a*'],
      name: 'test',
      made_by: 'root',
      expires_at_ms: null,
      user: null,
    })
    const credentials = { email: 'ann@example.com', password: 'correct horse battery' }
    const { body: registered } = await checkedCall(server, 'POST /v1/auth/register', {
      body: credentials,
      key: null,
    })
    const { body: user } = await whoAmI(`Bearer ${registered.token}`)
    expect(user).toMatchObject({
      principal: `user::${registered.user_id}`,
      kind: 'user',
      scopes: [],
      user: { user_id: registered.user_id, namespace: '', email: 'ann@example.com' },
    })
    expect(user.expires_at_ms).toBeGreaterThan(Date.now())
  })

  it('answers 401 without a credential', async () => {
    expect((await checkedCall(server, 'GET /v1/whoami', { key: null })).status).toBe(401)
  })
})

describe('a key as the password of Basic', () => {
  it('is accepted with any user name', async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'])
    for (const pair of [`:${key}`, `x:${key}`, `ann@example.com:${key}`]) {
      expect((await whoAmI(basic(pair))).body.principal).toBe(key_id)
    }
    expect((await whoAmI(basic(`root:${testRootKey}`))).body.principal).toBe('root')
    expect((await whoAmI(`basic  ${basic(`u:${key}`).slice(6)}`)).body.principal).toBe(key_id)
  })

  it('is refused if it is not a key, or the header is malformed', async () => {
    const { key } = await scopedKey(server, ['records:read'])
    const wrong = [
      basic(key),
      basic(`${key}:`),
      basic(`u:${key} `),
      basic(':'),
      'Basic',
      'Basic !!!!',
      'Basic =',
    ]
    for (const one of wrong) expect([one, (await whoAmI(one)).status]).toEqual([one, 401])
  })

  it('is refused after the key was deleted', async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'])
    expect((await whoAmI(basic(`u:${key}`))).status).toBe(200)
    await checkedCall(server, `DELETE /v1/admin/api-keys/${key_id}`)
    expect((await whoAmI(basic(`u:${key}`))).status).toBe(401)
  })
})

describe('a key that expires', () => {
  it('is refused after that, its streams end, and keys that it created end with it', async () => {
    const body = { name: 'short', scopes: ['admin:*'], expires_in_secs: 2 }
    const made = (await checkedCall(server, 'POST /v1/admin/api-keys', { body })).body
    const { key } = made
    const child = (
      await checkedCall(server, 'POST /v1/admin/api-keys', {
        key,
        body: { name: 'child', scopes: ['ingest'], expires_in_secs: 3_600 },
      })
    ).body
    expect(child.expires_at_ms).toBe(made.expires_at_ms)
    const stream = await fetch(`${server.url}/v1/stream`, { headers: { authorization: `Bearer ${key}` } })
    expect(stream.status).toBe(200)
    const ended = stream.text()
    await eventually(async () => (await whoAmI(`Bearer ${key}`)).status === 401)
    expect((await whoAmI(basic(`u:${child.key}`))).status).toBe(401)
    expect(await ended).toContain('retry')
    const { api_keys: rows } = (await checkedCall(server, 'GET /v1/admin/api-keys')).body
    expect(rows.find((one: { key_id: string }) => one.key_id === made.key_id)).toMatchObject({
      expires_at_ms: made.expires_at_ms,
    })
  })

  it.each([0, -1, 1.5, 400_000_000, 'soon'])('answers 400 for %s seconds', async (expires_in_secs) => {
    const body = { name: 'x', scopes: ['ingest'], expires_in_secs }
    expect((await checkedCall(server, 'POST /v1/admin/api-keys', { body })).status).toBe(400)
  })
})

it('lists keys page by page', async () => {
  const seen: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: { body: { api_keys: { key_id: string }[]; next_cursor: string | null } } = await checkedCall(
      server,
      `GET /v1/admin/api-keys?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`,
    )
    seen.push(...page.body.api_keys.map(({ key_id }) => key_id))
    cursor = page.body.next_cursor
  }
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.length).toBe((await checkedCall(server, 'GET /v1/admin/api-keys')).body.api_keys.length)
  for (const query of ['?limit=0', '?limit=1001', '?cursor=x']) {
    expect((await call(server, `GET /v1/admin/api-keys${query}`)).status).toBe(400)
  }
})

it('the server answered every documented success', () => {
  expect(untestedSuccesses([whoamiRoute])).toEqual([])
})
