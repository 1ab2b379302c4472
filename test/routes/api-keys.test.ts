import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiKeyRoutes } from '../../src/front/routes/api-keys.js'
import { scopes, type Scope } from '../../src/wire/api-keys.js'
import {
  checkedCall,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  await newAgent(server, 'team-a')
  await newAgent(server, 'other')
})
afterAll(() => server.stop())

/** The existing keys, without their last use. */
async function existingKeys(): Promise<unknown> {
  const { body } = await checkedCall(server, 'GET /v1/admin/api-keys')
  return body.api_keys.map((one: object) => ({ ...one, last_used_at_ms: undefined }))
}

describe('creating a key', () => {
  it('shows the key once, and lists it without the key text', async () => {
    const body = { name: 'reader', scopes: ['records:read'], agents: ['team-*'] }
    const created = await checkedCall(server, 'POST /v1/admin/api-keys', { body })
    expect(created.status).toBe(201)
    expect(created.body).toMatchObject(body)
    expect(created.headers.get('cache-control')).toBe('no-store')
    const list = await checkedCall(server, 'GET /v1/admin/api-keys')
    expect(list.text).not.toContain(created.body.key)
    const shown = list.body.api_keys.find((one: { key_id: string }) => one.key_id === created.body.key_id)
    expect(shown).toMatchObject({ name: 'reader', scopes: ['records:read'], agents: ['team-*'] })
  })

  it.each([
    ['no name', { scopes: ['ingest'] }],
    ['an empty name', { name: '', scopes: ['ingest'] }],
    ['a name that turns around', { name: 'a\u202eb', scopes: ['ingest'] }],
    ['a name of two lines', { name: 'a\nb', scopes: ['ingest'] }],
    ['a name with a BOM', { name: 'a\ufeffb', scopes: ['ingest'] }],
    ['no scopes', { name: 'x' }],
    ['an empty list of scopes', { name: 'x', scopes: [] }],
    ['another scope', { name: 'x', scopes: ['root'] }],
    ['a star in the middle of an agent', { name: 'x', scopes: ['ingest'], agents: ['a*b'] }],
    ['an empty agent', { name: 'x', scopes: ['ingest'], agents: [''] }],
    ['a member that it does not have', { name: 'x', scopes: ['ingest'], root: true }],
  ])('answers 400 for %s', async (_what, body) => {
    const before = await checkedCall(server, 'GET /v1/admin/api-keys')
    const refused = await checkedCall(server, 'POST /v1/admin/api-keys', { body })
    expect([refused.status, refused.body.code]).toEqual([400, 'validation_failed'])
    expect((await checkedCall(server, 'GET /v1/admin/api-keys')).body).toEqual(before.body)
  })

  it('is forbidden for keys without admin:*, and for keys that are limited to agents', async () => {
    const keys = [
      await scopedKey(
        server,
        scopes.filter((scope) => scope !== 'admin:*'),
      ),
      await scopedKey(server, ['admin:*'], ['team-*']),
    ]
    const { key_id } = await scopedKey(server, ['ingest'])
    const before = await existingKeys()
    for (const { key } of keys) {
      for (const route of [
        'POST /v1/admin/api-keys',
        'GET /v1/admin/api-keys',
        `DELETE /v1/admin/api-keys/${key_id}`,
      ]) {
        const body = route.startsWith('POST') ? { name: 'more', scopes: ['admin:*'] } : undefined
        const refused = await checkedCall(server, route, { key, body })
        expect([route, refused.status, refused.body.code]).toEqual([route, 403, 'forbidden'])
      }
    }
    expect(await existingKeys()).toEqual(before)
    expect((await checkedCall(server, 'GET /v1/admin/api-keys', { key: null })).status).toBe(401)
  })
})

describe('a scope', () => {
  const write = { body: { data: { n: 1 } } }
  const cases: [Scope, string, object][] = [
    ['records:read', 'GET /v1/agents/team-a/head', {}],
    ['records:read', 'GET /v1/agents/team-a/status', {}],
    ['records:read', 'POST /v1/agents/team-a/query', { body: { type: 'latest' } }],
    ['records:read', 'GET /v1/strand/checkpoint?agent=team-a', {}],
    ['records:read', 'GET /v1/strand/export?agent=team-a', {}],
    ['records:read', 'POST /v1/stream/tickets', {}],
    ['records:write', 'POST /v1/agents/team-a/records', write],
    ['records:write', 'POST /v1/collections/team-a/records', write],
    ['records:write', 'POST /v1/agents/team-a/records/batch', { body: { records: [{ data: {} }] } }],
    ['records:write', 'POST /v1/graph/edges', { body: { src: 'team-a', dst: 'team-a', edge_type: 'is' } }],
    ['ingest', 'POST /v1/ingest/team-a', { body: { n: 1 } }],
    ['admin:*', 'GET /v1/admin/api-keys', {}],
  ]

  it.each(cases)('%s alone allows %s, and every other scope is 403', async (scope, route, options) => {
    const { key } = await scopedKey(server, [scope])
    expect((await checkedCall(server, route, { ...options, key })).status).toBeLessThan(300)
    const others = scopes.filter((one) => one !== scope && one !== 'admin:*')
    const { key: without } = await scopedKey(server, others)
    const refused = await expectUnchanged(server, 'team-a', () =>
      checkedCall(server, route, { ...options, key: without }),
    )
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    const absent = await expectUnchanged(server, 'team-a', () =>
      checkedCall(server, route, { ...options, key: null }),
    )
    expect([absent.status, absent.body.code]).toEqual([401, 'unauthorized'])
  })
})

describe('the agents of a key', () => {
  const hash = '0'.repeat(64)
  const write = { body: { data: { n: 1 } } }
  const cases: [string, object][] = [
    ['GET /v1/agents/NAME/head', {}],
    ['GET /v1/agents/NAME/status', {}],
    ['POST /v1/agents/NAME/records', write],
    ['POST /v1/collections/NAME/records', write],
    ['POST /v1/agents/NAME/records/batch', { body: { records: [{ data: {} }] } }],
    ['POST /v1/collections/NAME/records/batch', { body: { records: [{ data: {} }] } }],
    [`GET /v1/agents/NAME/records/${hash}`, {}],
    [`DELETE /v1/agents/NAME/records/${hash}`, {}],
    [`POST /v1/agents/NAME/records/${hash}/restore`, {}],
    ['POST /v1/agents/NAME/query', { body: { type: 'latest' } }],
    ['POST /v1/ingest/NAME', { body: { n: 1 } }],
    ['GET /v1/strand/export?agent=NAME', {}],
    ['GET /v1/strand/checkpoint?agent=NAME', {}],
    [`GET /v1/strand/proof?agent=NAME&hash=${hash}`, {}],
  ]

  it.each(cases)('limit %s', async (route, options) => {
    for (const agents of [['team-a'], ['te*', 'absent']]) {
      const { key } = await scopedKey(server, ['admin:*'], agents)
      const reached = await checkedCall(server, route.replace('NAME', 'team-a'), { ...options, key })
      expect(reached.status === 404 ? reached.body.code : reached.status).not.toBe(403)
      for (const name of ['other', 'team', 'team-', 'absent-2', 'default']) {
        if (agents[0] === 'te*' && name.startsWith('te')) continue
        const refused = await expectUnchanged(server, name, () =>
          checkedCall(server, route.replace('NAME', name), { ...options, key }),
        )
        expect([name, refused.status, refused.body.code]).toEqual([name, 403, 'forbidden'])
      }
    }
  })

  it('limit each line of an ingest into many', async () => {
    const { key } = await scopedKey(server, ['ingest'], ['team-*'])
    const raw = '{"agent":"team-a","data":{}}\n{"agent":"other","data":{}}\n'
    const headers = { 'content-type': 'application/x-ndjson' }
    const { body } = await expectUnchanged(server, 'other', () =>
      checkedCall(server, 'POST /v1/ingest', { key, raw, headers }),
    )
    expect(body).toMatchObject({ accepted: 1, rejected: 1, errors: [{ line: 2, code: 'forbidden' }] })
  })

  it('limit the global stream to the named agents', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['team-*'])
    for (const query of ['', '?agents=other', '?agents=team-a,other', '?agents=team']) {
      const refused = await checkedCall(server, `GET /v1/stream${query}`, { key })
      expect([query, refused.status, refused.body.code]).toEqual([query, 403, 'forbidden'])
    }
    expect((await checkedCall(server, 'GET /v1/agents/other/stream', { key })).status).toBe(403)
  })
})

describe('deleting a key', () => {
  it('revokes it, and answers 404 for a missing key', async () => {
    const { key, key_id } = await scopedKey(server, ['records:read'])
    expect((await checkedCall(server, 'GET /v1/agents/team-a/head', { key })).status).toBe(200)
    const deleted = await checkedCall(server, `DELETE /v1/admin/api-keys/${key_id}`)
    expect(deleted.body).toEqual({ deleted: true, key_id })
    expect((await checkedCall(server, 'GET /v1/agents/team-a/head', { key })).status).toBe(401)
    for (const gone of [key_id, 'key_none', 'x'.repeat(4_000), '%00']) {
      const refused = await checkedCall(server, `DELETE /v1/admin/api-keys/${gone}`)
      expect([refused.status, refused.body.code]).toEqual([404, 'not_found'])
    }
  })
})

describe('an Idempotency-Key', () => {
  const make = (options: TestCall) => checkedCall(server, 'POST /v1/admin/api-keys', options)
  const body = { name: 'once', scopes: ['records:read'], agents: ['team-a'] }
  const countKeys = async () => (await checkedCall(server, 'GET /v1/admin/api-keys')).body.api_keys.length

  it('creates one key for repeated and concurrent requests', async () => {
    const headers = { 'idempotency-key': 'make-once' }
    const before = await countKeys()
    const answers = await Promise.all(Array.from({ length: 8 }, () => make({ body, headers })))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    const replays = answers.filter((one) => one.headers.get('idempotency-replayed') === 'true')
    expect(replays).toHaveLength(7)
    expect(answers.map((one) => one.headers.get('cache-control'))).toEqual(Array(8).fill('no-store'))
    expect(await countKeys()).toBe(before + 1)
    const { key } = answers[0]?.body ?? {}
    expect((await checkedCall(server, 'GET /v1/agents/team-a/head', { key })).status).toBe(200)
  })

  it('identifies the content of a request, not its spelling', async () => {
    const headers = { 'idempotency-key': 'meaning' }
    const first = await make({ body: { name: 'all', scopes: ['ingest'] }, headers })
    const again = await make({ raw: '{ "agents": [], "scopes": ["ingest"], "name": "all" }', headers })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(again.text).toBe(first.text)
  })

  it.each([
    ['another name', { ...body, name: 'twice' }],
    ['another scope', { ...body, scopes: ['records:write'] }],
    ['other agents', { ...body, agents: [] }],
  ])('is refused with %s after a creation', async (what, other) => {
    const headers = { 'idempotency-key': `reused ${what}` }
    expect((await make({ body, headers })).status).toBe(201)
    const before = await countKeys()
    const refused = await make({ body: other, headers })
    expect([refused.status, refused.body.code]).toEqual([422, 'idempotency_key_reused'])
    expect(await countKeys()).toBe(before)
  })

  it('belongs to its caller', async () => {
    const headers = { 'idempotency-key': 'same for two' }
    const { key } = await scopedKey(server, ['admin:*'])
    const [ours, theirs] = [await make({ body, headers }), await make({ body, headers, key })]
    expect([ours.status, theirs.status]).toEqual([201, 201])
    expect(theirs.headers.get('idempotency-replayed')).toBeNull()
    expect(theirs.body.key).not.toBe(ours.body.key)
    const { key: reader } = await scopedKey(server, ['records:read'])
    expect((await make({ body, headers, key: reader })).status).toBe(403)
  })

  it('repeats the answer to a deletion, without restoring or deleting a key', async () => {
    const headers = { 'idempotency-key': 'delete-once' }
    const made = await make({ body, headers: { 'idempotency-key': 'made to be deleted' } })
    const { key_id: kept } = await scopedKey(server, ['ingest'])
    const remove = (keyId: string) => checkedCall(server, `DELETE /v1/admin/api-keys/${keyId}`, { headers })
    const answers = [await remove(made.body.key_id), await remove(made.body.key_id)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers.map((one) => one.headers.get('idempotency-replayed'))).toEqual([null, 'true'])
    expect(answers[1]?.text).toBe(answers[0]?.text)
    const again = await make({ body, headers: { 'idempotency-key': 'made to be deleted' } })
    expect(again.text).toBe(made.text)
    expect((await checkedCall(server, 'GET /v1/agents/team-a/head', { key: made.body.key })).status).toBe(401)
    for (const refused of [await remove(kept), await make({ body, headers })]) {
      expect([refused.status, refused.body.code]).toEqual([422, 'idempotency_key_reused'])
    }
    const { text } = await checkedCall(server, 'GET /v1/admin/api-keys')
    expect(text).toContain(kept)
    expect(text).not.toContain(made.body.key_id)
  })

  it('is not used up by a refused request', async () => {
    const headers = { 'idempotency-key': 'put right' }
    expect((await make({ body: { name: '', scopes: ['ingest'] }, headers })).status).toBe(400)
    expect((await checkedCall(server, 'DELETE /v1/admin/api-keys/key_none', { headers })).status).toBe(404)
    expect((await make({ body, headers })).status).toBe(201)
    const long = { 'idempotency-key': 'x'.repeat(256) }
    expect((await make({ body, headers: long })).status).toBe(400)
    expect((await checkedCall(server, 'DELETE /v1/admin/api-keys/key_none', { headers: long })).status).toBe(
      400,
    )
  })
})

it('answers 202 for a key that can decide on proposals if two admin keys exist', async () => {
  for (let n = 0; n < 2; n++) await scopedKey(server, ['admin:*'])
  const body = { name: 'decider', scopes: ['proposals:decide'] }
  const { status, body: proposed } = await checkedCall(server, 'POST /v1/admin/api-keys', { body })
  expect([status, proposed.state]).toEqual([202, 'proposed'])
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(apiKeyRoutes)).toEqual([])
})
