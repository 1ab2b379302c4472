import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { organismAuthRoutes } from '../../src/front/routes/auth/auth-routes.js'
import { organismRoutes } from '../../src/front/routes/organisms.js'
import { keyPairFromSeed } from '../../src/strand/keys.js'
import { checkedCall, headOf, newAgent, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { newOrganism } from '../support/auth/organisms.js'
import { type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

const seed = (byte: string) => byte.repeat(32)
const create = (body: unknown, more: TestCall = {}) =>
  checkedCall(server, 'POST /v1/organisms', { body, ...more })
const outcome = async (pending: ReturnType<typeof checkedCall>) => {
  const { status, body } = await pending
  return status < 400 ? `${status}` : `${status} ${body.code}`
}

describe('creating an organism', () => {
  it('answers 201 and creates its agents, each with its own strand', async () => {
    const agents = [
      { name: 'notes', zone: 'free' },
      { name: 'ledger', zone: 'immutable_core' },
    ]
    const { status, body } = await create({ organism_id: 'acme', name: 'Acme & Söhne', agents })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      organism_id: 'acme',
      name: 'Acme & Söhne',
      agents: [
        { agent_id: 'acme::notes', name: 'notes', zone: 'free' },
        { agent_id: 'acme::ledger', name: 'ledger', zone: 'immutable_core' },
      ],
    })
    expect(Math.abs(body.created_at_ms - Date.now())).toBeLessThan(60_000)
    for (const { agent_id, zone } of body.agents) {
      expect((await checkedCall(server, `GET /v1/agents/${agent_id}/status`)).body).toMatchObject({ zone })
    }
    expect(await headOf(server, 'acme::auth')).toBeUndefined()
  })

  it('generates a new id if none is given', async () => {
    const ids = [await create({ name: 'One' }), await create({ name: 'Two' })].map(
      ({ body }) => body.organism_id,
    )
    for (const id of ids) expect(id).toMatch(/^org_[0-9a-f]{24}$/)
    expect(ids[0]).not.toBe(ids[1])
  })

  it('answers 409 for an existing id, and creates no agent', async () => {
    await newOrganism(server, 'taken', { auth: false })
    const body = { organism_id: 'taken', name: 'Other', agents: [{ name: 'late', zone: 'free' }] }
    expect(await outcome(create(body))).toBe('409 organism_exists')
    expect(await headOf(server, 'taken::late')).toBeUndefined()
  })

  it('creates the organism once for concurrent requests', async () => {
    const racing = Array.from({ length: 8 }, () => outcome(create({ organism_id: 'raced', name: 'R' })))
    const outcomes = (await Promise.all(racing)).toSorted()
    expect(outcomes).toEqual(['201', ...Array.from({ length: 7 }, () => '409 organism_exists')])
  })

  it('answers 400 for an invalid id, name or zone, a reserved name, and a repeated name', async () => {
    const one = (name: string, zone = 'free') => ({
      organism_id: 'bad',
      name: 'Bad',
      agents: [{ name, zone }],
    })
    const twice = { organism_id: 'bad', name: 'Bad', agents: [one('a').agents[0], one('a').agents[0]] }
    const ids = [
      '',
      'a::b',
      'a:b',
      'a/b',
      '../a',
      '..',
      '.',
      'a..b',
      'a\0b',
      'a\n',
      'ünï',
      'a b',
      'x'.repeat(129),
    ]
    const bodies = [
      ...ids.map((organism_id) => ({ organism_id, name: 'Bad' })),
      ...['auth', 'a::b', '', '.a'].map((name) => one(name)),
      one('a', 'wild'),
      twice,
      { organism_id: 'bad' },
      { organism_id: 'bad', name: '' },
      { organism_id: 'bad', name: 'Bad', owner: 'me' },
    ]
    for (const body of bodies) {
      expect(await outcome(create(body)), JSON.stringify(body)).toBe('400 validation_failed')
    }
    const reserved = await create({
      organism_id: 'bad',
      name: 'Bad',
      agents: [one('b').agents[0], one('auth').agents[0]],
    })
    expect(reserved.body.errors).toMatchObject([{ pointer: '/agents/1/name' }])
    expect(await outcome(checkedCall(server, 'GET /v1/organisms/bad'))).toBe('404 organism_not_found')
  })

  it('answers 400 for an id that is a reserved word', async () => {
    const words = [
      ...Object.getOwnPropertyNames(Object.prototype),
      ...'prototype null undefined true NaN'.split(' '),
      ...'default Default auth AUTH server Server root admin sys organisms'.split(' '),
    ]
    for (const organism_id of words) {
      const { status, body } = await create({ organism_id, name: 'Word' })
      expect([organism_id, status, body.code]).toEqual([organism_id, 400, 'validation_failed'])
      expect(body.errors).toMatchObject([{ pointer: '/organism_id' }])
    }
    expect(await outcome(create({ organism_id: 'defaults', name: 'No word' }))).toBe('201')
  })

  it('accepts keys with admin:organisms, limited ones only for organisms that they reach completely', async () => {
    const lesser = await scopedKey(server, ['agents:admin', 'records:write'])
    expect(await outcome(create({ name: 'No' }, { key: lesser.key }))).toBe('403 forbidden')
    expect(await outcome(create({ name: 'No' }, { key: null }))).toBe('401 unauthorized')
    const { key } = await scopedKey(server, ['admin:organisms'])
    expect(await outcome(create({ organism_id: 'scoped', name: 'Yes' }, { key }))).toBe('201')
    const limits = ['north', 'north::notes', 'north::n*', 'south*', 'north', 'org_1*']
    for (const limit of limits) {
      const { key } = await scopedKey(server, ['admin:organisms'], [limit])
      expect(await outcome(create({ organism_id: 'north', name: 'No' }, { key })), limit).toBe(
        '403 forbidden',
      )
      expect(await outcome(create({ name: 'No' }, { key })), limit).toBe('403 forbidden')
    }
    const whole = await scopedKey(server, ['admin:organisms'], ['nor*', 'org*'])
    expect(await outcome(create({ organism_id: 'north', name: 'N' }, { key: whole.key }))).toBe('201')
    expect(await outcome(create({ name: 'N' }, { key: whole.key }))).toBe('201')
  })

  it('repeats the first answer with the same Idempotency-Key, and answers 422 for another body', async () => {
    const headers = { 'idempotency-key': 'organism-once' }
    const body = { name: 'Once', agents: [{ name: 'a', zone: 'free' }] }
    const first = await create(body, { headers })
    const again = await create(body, { headers })
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.text).toBe(first.text)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await outcome(create({ ...body, name: 'Twice' }, { headers }))).toBe('422 idempotency_key_reused')
    const other = await scopedKey(server, ['admin:organisms'])
    const others = await create(body, { headers, key: other.key })
    expect(others.body.organism_id).not.toBe(first.body.organism_id)
  })
})

describe('creating an agent of an organism', () => {
  const member = (id: string, body: unknown, more: TestCall = {}) =>
    checkedCall(server, `POST /v1/organisms/${id}/agents`, { body, ...more })

  beforeAll(() => newOrganism(server, 'guild', { agents: ['first'], auth: false }))

  it('answers 201 with its address, and derives the key pair from the seed', async () => {
    const seed_hex = seed('4d')
    const { status, body, text } = await member('guild', { name: 'second', zone: 'free', seed_hex })
    expect(status).toBe(201)
    expect(body).toMatchObject({ agent_id: 'guild::second', name: 'second', zone: 'free' })
    expect(body.public_key).toBe(keyPairFromSeed(Buffer.from(seed_hex, 'hex')).publicKey)
    expect(text).not.toContain(seed_hex)
    const written = await checkedCall(server, 'POST /v1/agents/guild::second/records', {
      body: { data: { n: 1 } },
    })
    expect(written.body).toMatchObject({ agent: 'guild::second', seq: 1 })
  })

  it('answers 404 for a missing organism and an invalid id', async () => {
    await newAgent(server, 'lonely')
    for (const id of ['absent', 'lonely', 'a::b', 'a%2fb', '..%2f', '%00', 'guild%00', 'guild%3A%3A']) {
      const pending = member(id, { name: 'x', zone: 'free' })
      expect(await outcome(pending), id).toBe('404 organism_not_found')
    }
    expect((await checkedCall(server, 'GET /v1/agents?prefix=lonely')).body.agents).toEqual(['lonely'])
  })

  it('answers 409 for an existing name or key, also of an agent outside the organism', async () => {
    const again = member('guild', { name: 'first', zone: 'governed' })
    expect(await outcome(again)).toBe('409 agent_exists')
    const seed_hex = seed('4e')
    const outside = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'outside', zone: 'free', seed_hex },
    })
    expect(outside.status).toBe(201)
    const thief = member('guild', { name: 'thief', zone: 'free', seed_hex })
    expect(await outcome(thief)).toBe('409 key_in_use')
    expect(await headOf(server, 'guild::thief')).toBeUndefined()
  })

  it('answers 400 for the reserved name, and for an invalid agent', async () => {
    for (const body of [
      { name: 'auth', zone: 'immutable_core' },
      { name: 'a::b', zone: 'free' },
      { name: 'a', zone: 'wild' },
      { name: 'a' },
      { name: 'a', zone: 'free', seed_hex: 'short' },
    ]) {
      expect(await outcome(member('guild', body)), JSON.stringify(body)).toBe('400 validation_failed')
    }
    expect(await headOf(server, 'guild::auth')).toBeUndefined()
  })

  it('accepts keys with admin:organisms that reach the new agent', async () => {
    const body = { name: 'reached', zone: 'free' }
    const lesser = await scopedKey(server, ['agents:admin'])
    const elsewhere = await scopedKey(server, ['admin:organisms'], ['other::*', 'guild', 'reached'])
    for (const { key } of [lesser, elsewhere]) {
      expect(await outcome(member('guild', body, { key }))).toBe('403 forbidden')
    }
    const { key } = await scopedKey(server, ['admin:organisms'], ['guild::*'])
    expect(await outcome(member('guild', body, { key }))).toBe('201')
  })

  it('repeats the first answer with the same Idempotency-Key, and answers 422 for another body', async () => {
    const headers = { 'idempotency-key': 'member-once' }
    const body = { name: 'once', zone: 'free' }
    const first = await member('guild', body, { headers })
    const again = await member('guild', body, { headers })
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const other = member('guild', { ...body, name: 'other' }, { headers })
    expect(await outcome(other)).toBe('422 idempotency_key_reused')
  })
})

describe('reading organisms', () => {
  it('shows one with all its agents', async () => {
    await newOrganism(server, 'shown', { agents: ['b', 'a'] })
    await checkedCall(server, 'POST /v1/organisms/shown/agents', { body: { name: 'later', zone: 'free' } })
    const { body } = await checkedCall(server, 'GET /v1/organisms/shown')
    expect(body).toMatchObject({ organism_id: 'shown', name: 'shown', auth: true, agent_count: 4 })
    expect(body.agents).toEqual(['shown::a', 'shown::auth', 'shown::b', 'shown::later'])
    await newOrganism(server, 'shown2', { auth: false })
    expect((await checkedCall(server, 'GET /v1/organisms/shown2')).body).toMatchObject({
      auth: false,
      agents: [],
    })
    expect(await outcome(checkedCall(server, 'GET /v1/organisms/hidden'))).toBe('404 organism_not_found')
  })

  it('lists all in order, page by page', async () => {
    const whole = (await checkedCall(server, 'GET /v1/organisms?limit=1000')).body
    const ids = whole.organisms.map(({ organism_id: id }: { organism_id: string }) => id)
    expect(ids.length).toBeGreaterThan(5)
    expect(ids).toEqual(ids.toSorted())
    expect(whole).toMatchObject({ total: ids.length, next_cursor: null })
    const seen: string[] = []
    for (let cursor = ''; ;) {
      const { body } = await checkedCall(server, `GET /v1/organisms?limit=2${cursor}`)
      seen.push(...body.organisms.map(({ organism_id: id }: { organism_id: string }) => id))
      expect(body.total).toBe(ids.length)
      if (body.next_cursor === null) break
      cursor = `&cursor=${body.next_cursor}`
    }
    expect(seen).toEqual(ids)
    for (const query of [
      'limit=0',
      'cursor=x',
      `cursor=${Buffer.from('["organisms","../"]').toString('base64url')}`,
    ]) {
      expect(await outcome(checkedCall(server, `GET /v1/organisms?${query}`))).toBe('400 validation_failed')
    }
  })

  it('accepts keys with admin:organisms that reach all that is shown', async () => {
    const lesser = await scopedKey(server, ['records:read', 'agents:admin'])
    const limited = await scopedKey(server, ['admin:organisms'], ['guild::*'])
    for (const path of ['/v1/organisms', '/v1/organisms/acme']) {
      for (const { key } of [lesser, limited]) {
        expect(await outcome(checkedCall(server, `GET ${path}`, { key })), path).toBe('403 forbidden')
      }
    }
    expect(await outcome(checkedCall(server, 'GET /v1/organisms/guild', { key: limited.key }))).toBe('200')
  })
})

describe('creating the auth namespace of an organism', () => {
  const init = (id: string, more: TestCall = {}) =>
    checkedCall(server, `POST /v1/organisms/${id}/auth/init`, more)

  it('answers 201, with an immutable agent and its audit record', async () => {
    await newOrganism(server, 'club', { auth: false })
    const { status, body } = await init('club')
    expect(status).toBe(201)
    expect(body).toMatchObject({ organism_id: 'club', agent_id: 'club::auth' })
    const agent = (await checkedCall(server, 'GET /v1/agents/club::auth/status')).body
    expect(agent).toMatchObject({
      zone: 'immutable_core',
      record_count: 1,
      created_at_ms: body.created_at_ms,
    })
    const query = { type: 'latest', types: ['auth/*'] }
    const { body: page } = await checkedCall(server, 'POST /v1/agents/club::auth/query', { body: query })
    expect(page.records).toMatchObject([
      { type: 'auth/namespace_initialised', seq: 1, payload: { outcome: 'success' } },
    ])
  })

  it('answers 409 the second time, and writes nothing', async () => {
    await newOrganism(server, 'club2')
    const before = await headOf(server, 'club2::auth')
    expect(await outcome(init('club2'))).toBe('409 namespace_exists')
    expect(await headOf(server, 'club2::auth')).toEqual(before)
  })

  it('creates the namespace once for concurrent requests', async () => {
    await newOrganism(server, 'club3', { auth: false })
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcome(init('club3'))))
    expect(outcomes.filter((one) => one === '201')).toHaveLength(1)
    expect(outcomes.filter((one) => one === '409 namespace_exists')).toHaveLength(7)
    expect(await headOf(server, 'club3::auth')).toMatchObject({ seq: 1 })
  })

  it('answers 404 for a missing organism', async () => {
    for (const id of ['absent', 'lonely', 'a::b', '..%2fclub', 'club%00']) {
      expect(await outcome(init(id)), id).toBe('404 organism_not_found')
    }
    expect(await headOf(server, 'absent::auth')).toBeUndefined()
  })

  it('accepts only the root key and unlimited keys with admin:organisms', async () => {
    await newOrganism(server, 'club4', { auth: false })
    for (const key of [null, 'nonsense'])
      expect(await outcome(init('club4', { key }))).toBe('401 unauthorized')
    const lesser = await scopedKey(server, ['agents:admin', 'records:write'])
    const limited = await scopedKey(server, ['admin:organisms'], ['club4::*'])
    for (const { key } of [lesser, limited]) {
      expect(await outcome(init('club4', { key }))).toBe('403 forbidden')
    }
    expect(await headOf(server, 'club4::auth')).toBeUndefined()
    const { key } = await scopedKey(server, ['admin:organisms'])
    expect(await outcome(init('club4', { key }))).toBe('201')
  })
})

it('returned every documented success', () => {
  const init = organismAuthRoutes.filter(({ path }) => path.endsWith('/init'))
  expect(untestedSuccesses([...organismRoutes, ...init])).toEqual([])
})
