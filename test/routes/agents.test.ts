import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentRoutes } from '../../src/front/routes/agents.js'
import { keyPairFromSeed } from '../../src/strand/keys.js'
import { zones } from '../../src/strand/zone.js'
import { checkedCall, headOf, newAgent, scopedKey, untestedSuccesses } from '../support/http/answers.js'
import { startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
})
afterAll(() => server.stop())

const seed = (byte: string) => byte.repeat(32)

describe('creating an agent', () => {
  it('answers 201 with its strand and key, in every zone', async () => {
    for (const zone of zones) {
      const { status, body } = await checkedCall(server, 'POST /v1/agents', {
        body: { name: `zone-${zone}`, zone },
      })
      expect(status).toBe(201)
      expect(body).toMatchObject({ agent_id: `zone-${zone}`, name: `zone-${zone}`, zone })
      expect(Math.abs(body.created_at_ms - Date.now())).toBeLessThan(60_000)
      const head = await headOf(server, `zone-${zone}`)
      expect(head).toMatchObject({ chain_head: body.strand, seq: 0, record_count: 0 })
    }
  })

  it('derives the key pair from the seed, and never returns the seed', async () => {
    const seedHex = seed('7a')
    const created = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'seeded', zone: 'free', seed_hex: seedHex },
    })
    expect(created.body.public_key).toBe(keyPairFromSeed(Buffer.from(seedHex, 'hex')).publicKey)
    const status = await checkedCall(server, 'GET /v1/agents/seeded/status')
    const all = await checkedCall(server, 'GET /v1/strand/export?agent=seeded')
    for (const { text } of [created, status, all]) expect(text).not.toContain(seedHex)
    expect(server.stderr()).not.toContain(seedHex)
  })

  it('answers 409 when the agent already exists, and does not change it', async () => {
    await newAgent(server, 'twice')
    const before = await checkedCall(server, 'GET /v1/agents/twice/status')
    const again = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'twice', zone: 'governed', seed_hex: seed('01') },
    })
    expect([again.status, again.body.code]).toEqual([409, 'agent_exists'])
    expect((await checkedCall(server, 'GET /v1/agents/twice/status')).body).toEqual(before.body)
  })

  it('answers 409 when another agent has the key, on any shard', async () => {
    const seed_hex = seed('5c')
    const first = await checkedCall(server, 'POST /v1/agents', {
      body: { name: 'owner', zone: 'free', seed_hex },
    })
    expect(first.status).toBe(201)
    for (const name of ['thief-1', 'thief-2', 'thief-3', 'thief-4']) {
      const refused = await checkedCall(server, 'POST /v1/agents', { body: { name, zone: 'free', seed_hex } })
      expect([refused.status, refused.body.code]).toEqual([409, 'key_in_use'])
      expect(await headOf(server, name)).toBeUndefined()
    }
  })

  it('creates the agent once for concurrent requests', async () => {
    const racing = Array.from({ length: 12 }, () =>
      checkedCall(server, 'POST /v1/agents', { body: { name: 'raced', zone: 'free' } }),
    )
    const statuses = (await Promise.all(racing)).map(({ status }) => status).sort()
    expect(statuses).toEqual([201, ...Array.from({ length: 11 }, () => 409)])
  })

  it('repeats the first answer with the same Idempotency-Key, and answers 422 for another body', async () => {
    const headers = { 'idempotency-key': 'make-once' }
    const body = { name: 'once', zone: 'free', seed_hex: seed('3e') }
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => checkedCall(server, 'POST /v1/agents', { body, headers })),
    )
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.every(({ status }) => status === 201)).toBe(true)
    const replays = answers.filter((answer) => answer.headers.get('idempotency-replayed') === 'true')
    expect(replays.length).toBe(5)
    const other = await checkedCall(server, 'POST /v1/agents', {
      body: { ...body, zone: 'governed' },
      headers,
    })
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
  })

  it.each([
    ['no name', { zone: 'free' }, '/name'],
    ['an empty name', { name: '', zone: 'free' }, '/name'],
    ['a name that begins with a point', { name: '.a', zone: 'free' }, '/name'],
    ['a name of 129 characters', { name: 'a'.repeat(129), zone: 'free' }, '/name'],
    ['a name as organisms make them', { name: 'org::a', zone: 'free' }, '/name'],
    ['a name with a slash', { name: 'a/b', zone: 'free' }, '/name'],
    ['a name with a line break', { name: 'a\n', zone: 'free' }, '/name'],
    ['no zone', { name: 'bad' }, '/zone'],
    ['another zone', { name: 'bad', zone: 'open' }, '/zone'],
    ['a seed of 63 digits', { name: 'bad', zone: 'free', seed_hex: 'a'.repeat(63) }, '/seed_hex'],
    ['a seed that is not hex', { name: 'bad', zone: 'free', seed_hex: 'g'.repeat(64) }, '/seed_hex'],
    ['a member that it does not have', { name: 'bad', zone: 'free', seedHex: seed('00') }, '/seedHex'],
    ['a list', [], ''],
  ])('answers 400 with a pointer for %s', async (_what, body, pointer) => {
    const refused = await checkedCall(server, 'POST /v1/agents', { body })
    expect([refused.status, refused.body.code]).toEqual([400, 'validation_failed'])
    expect(refused.body.errors.map((fault: { pointer: string }) => fault.pointer)).toContain(pointer)
    expect(await headOf(server, 'bad')).toBeUndefined()
  })

  it('answers 400 for invalid JSON, and 413 for a body that is too large', async () => {
    for (const raw of ['', '{', 'null', '{"name":"bad","name":"bad","zone":"free"}']) {
      expect((await checkedCall(server, 'POST /v1/agents', { raw })).status).toBe(400)
    }
    const big = await checkedCall(server, 'POST /v1/agents', { raw: ' '.repeat(65_537) })
    expect([big.status, big.body.code]).toEqual([413, 'too_large'])
  })

  it('accepts a name of 128 characters', async () => {
    const name = await newAgent(server, 'n'.repeat(128))
    expect((await checkedCall(server, `GET /v1/agents/${name}/status`)).body.agent_id).toBe(name)
  })

  it('requires the scope, and an agent that the key reaches', async () => {
    const body = { name: 'forbidden', zone: 'free' }
    const none = await checkedCall(server, 'POST /v1/agents', { body, key: null })
    expect([none.status, none.body.code]).toEqual([401, 'unauthorized'])
    const { key: reader } = await scopedKey(server, ['records:read', 'records:write'])
    const { key: limited } = await scopedKey(server, ['agents:admin'], ['team-*'])
    for (const key of [reader, limited]) {
      const refused = await checkedCall(server, 'POST /v1/agents', { body, key })
      expect([refused.status, refused.body.code]).toEqual([403, 'forbidden'])
    }
    expect(await headOf(server, 'forbidden')).toBeUndefined()
    const own = await checkedCall(server, 'POST /v1/agents', {
      body: { ...body, name: 'team-a' },
      key: limited,
    })
    expect(own.status).toBe(201)
  })
})

describe('status and head', () => {
  it('count every record except genesis, and agree', async () => {
    const agent = await newAgent(server, 'counted')
    const written = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
      body: { data: { n: 1 } },
    })
    const status = await checkedCall(server, `GET /v1/agents/${agent}/status`)
    const head = await checkedCall(server, `GET /v1/agents/${agent}/head`)
    expect(status.body).toMatchObject({ agent_id: agent, zone: 'free', record_count: 1 })
    expect(head.body).toMatchObject({
      agent_id: agent,
      chain_head: written.body.content_hash,
      hash: written.body.hash,
      seq: 1,
      record_count: 1,
      timestamp_hlc: written.body.timestamp_hlc,
      timestamp_ms: written.body.timestamp_ms,
      signature: written.body.signature,
    })
    expect(status.body.chain_head).toBe(head.body.chain_head)
    expect(head.headers.get('etag')).toBe(`"${head.body.chain_head}"`)
  })

  it('find an agent by its percent-encoded name', async () => {
    await newAgent(server, 'dotted.name-1')
    const found = await checkedCall(server, 'GET /v1/agents/dotted%2Ename%2D1/head')
    expect(found.body.agent_id).toBe('dotted.name-1')
  })

  it.each(['head', 'status'])('answer 404, 400, 401 and 403: %s', async (what) => {
    const missing = await checkedCall(server, `GET /v1/agents/absent/${what}`)
    expect([missing.status, missing.body.code]).toEqual([404, 'agent_not_found'])
    for (const name of ['.hidden', 'a%2Fb', 'a%20b', '%FF', 'a%', 'a%00', 'a'.repeat(129), 'a::b::c']) {
      const refused = await checkedCall(server, `GET /v1/agents/${name}/${what}`)
      expect([name, refused.status, refused.body.code]).toEqual([name, 400, 'validation_failed'])
    }
    for (const key of [null, 'wrong', `${server.rootKey}x`, server.rootKey.slice(1)]) {
      const refused = await checkedCall(server, `GET /v1/agents/default/${what}`, { key })
      expect([refused.status, refused.body.code]).toEqual([401, 'unauthorized'])
    }
    const { key } = await scopedKey(server, ['records:read'], ['default2', 'team-*'])
    expect((await checkedCall(server, `GET /v1/agents/default/${what}`, { key })).status).toBe(403)
    const { key: writer } = await scopedKey(server, ['records:write'])
    expect((await checkedCall(server, `GET /v1/agents/default/${what}`, { key: writer })).status).toBe(403)
  })
})

describe('the list of agents', () => {
  const all = async (query: string, key?: string) => {
    const names: string[] = []
    let cursor = ''
    for (let page = 0; page < 100; page++) {
      const { body } = await checkedCall(
        server,
        `GET /v1/agents?${query}${cursor}`,
        key === undefined ? {} : { key },
      )
      names.push(...body.agents)
      if (body.next_cursor === null) return names
      cursor = `&cursor=${body.next_cursor}`
    }
    throw new Error('Expected the list to end')
  }

  it('contains every agent of all shards once, in order, page by page', async () => {
    const made = Array.from({ length: 25 }, (_none, n) => `list-${String(n).padStart(2, '0')}`)
    await Promise.all(made.map((name) => newAgent(server, name)))
    for (const limit of [1, 7, 25, 1000]) expect(await all(`prefix=list-&limit=${limit}`)).toEqual(made)
    const { body } = await checkedCall(server, 'GET /v1/agents?prefix=list-&limit=3')
    expect(body.total).toBe(25)
    expect((await all('')).includes('default')).toBe(true)
    expect(await all('prefix=no-such-prefix')).toEqual([])
    expect(await all('prefix=list-03')).toEqual(['list-03'])
  })

  // Regression: the list returned to the first page endlessly.
  it('continues after an agent whose name equals the prefix', async () => {
    await Promise.all(['same', 'same-and-more'].map((name) => newAgent(server, name)))
    const { body } = await checkedCall(server, 'GET /v1/agents?prefix=same&limit=1')
    expect(body.agents).toEqual(['same'])
    const next = await checkedCall(server, `GET /v1/agents?prefix=same&limit=1&cursor=${body.next_cursor}`)
    expect(next.body.agents).toEqual(['same-and-more'])
  })

  it('contains the names with a part, ignoring case, page by page', async () => {
    const made = ['part-Kitchen.1', 'part-kitchen.2', 'part-hall', 'part-KITCHEN', 'part.kitchen']
    await Promise.all(made.map((name) => newAgent(server, name)))
    const found = made.filter((name) => name !== 'part-hall').toSorted()
    for (const part of ['kitchen', 'KiTcHeN', 'itche'])
      for (const limit of [1, 3, 100]) expect(await all(`contains=${part}&limit=${limit}`)).toEqual(found)
    expect(await all('contains=kitchen&prefix=part-')).toEqual(
      found.filter((name) => name.startsWith('part-')),
    )
    expect(await all('contains=kitchen&prefix=hall')).toEqual([])
    expect(await all('contains=audit')).toEqual([])
    const { body } = await checkedCall(server, 'GET /v1/agents?contains=kitchen&include=status')
    expect([body.total, body.next_cursor]).toEqual([4, null])
    expect(body.statuses.map((one: { agent_id: string }) => one.agent_id)).toEqual(found)
    for (const part of ['a%20b', '%00', 'é', 'a'.repeat(259)])
      expect((await checkedCall(server, `GET /v1/agents?contains=${part}`)).status).toBe(400)
  })

  it('is complete while agents are created', async () => {
    const before = await all('prefix=list-&limit=4')
    const making = Array.from({ length: 10 }, (_none, n) => newAgent(server, `zz-during-${n}`))
    const during = await all('prefix=list-&limit=4')
    await Promise.all(making)
    expect(during).toEqual(before)
  })

  it('answers 400 for invalid limits and cursors', async () => {
    for (const query of ['limit=0', 'limit=1001', 'limit=-1', 'limit=1.5', 'limit=x', 'limit=']) {
      expect([query, (await checkedCall(server, `GET /v1/agents?${query}`)).status]).toEqual([query, 400])
    }
    for (const cursor of ['', 'x', 'W10', 'WzFd', 'eyJhIjoxfQ', 'null', '%00', 'é', 'a'.repeat(5_000)]) {
      const { status } = await checkedCall(server, `GET /v1/agents?cursor=${encodeURIComponent(cursor)}`)
      expect([cursor, status]).toEqual([cursor, 400])
    }
  })

  it('handles prefixes and cursors of any length and any characters', async () => {
    const long = 'a'.repeat(5_000)
    const cursor = Buffer.from(JSON.stringify(['agents', long])).toString('base64url')
    for (const query of [`prefix=${long}`, 'prefix=%00', 'prefix=%F4%8F%BF%BF', `cursor=${cursor}`]) {
      const { status } = await checkedCall(server, `GET /v1/agents?${query}`)
      expect([query.slice(0, 20), status]).toEqual([query.slice(0, 20), 400])
    }
    expect((await checkedCall(server, 'GET /readyz')).status).toBe(200)
    expect(server.stderr()).not.toContain('shard thread ended')
  })

  it('shows a limited key only agents of one of its prefixes', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['list-1*', 'default'])
    expect(await all('prefix=list-1', key)).toHaveLength(10)
    expect(await all('prefix=list-15', key)).toEqual(['list-15'])
    expect(await all('prefix=list-1&contains=5', key)).toEqual(['list-15'])
    const { key: exact } = await scopedKey(server, ['records:read'], ['default'])
    for (const query of ['', 'prefix=', 'prefix=list-', 'prefix=d', 'contains=list-1']) {
      for (const one of [key, exact]) {
        const refused = await checkedCall(server, `GET /v1/agents?${query}`, { key: one })
        expect([query, refused.status, refused.body.code]).toEqual([query, 403, 'forbidden'])
      }
    }
    const { key: everything } = await scopedKey(server, ['records:read'], ['*'])
    expect((await checkedCall(server, 'GET /v1/agents', { key: everything })).status).toBe(200)
  })
})

describe('the list of agents with their status', () => {
  const pages = async (on: TestServer, query: string) => {
    const found: { agents: string[]; statuses: { agent_id: string }[]; total: number }[] = []
    for (let cursor: string | null = ''; cursor !== null && found.length < 100;) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await checkedCall(on, `GET /v1/agents?include=status&${query}${after}`)
      found.push(body)
      cursor = body.next_cursor
    }
    return found
  }

  it('shows the same status as the route of each agent, across shards and pages', async () => {
    const made = Array.from({ length: 12 }, (_none, n) => `seen-${String(n).padStart(2, '0')}`)
    await Promise.all(made.map((name) => newAgent(server, name)))
    for (const name of made.slice(0, 5))
      await checkedCall(server, `POST /v1/agents/${name}/records`, { body: { data: { name } } })
    expect((await checkedCall(server, 'POST /v1/agents/seen-03/rotate-key', { body: {} })).status).toBe(200)
    const expected = await Promise.all(
      made.map(async (name) => (await checkedCall(server, `GET /v1/agents/${name}/status`)).body),
    )
    for (const limit of [1, 5, 12, 100]) {
      const found = await pages(server, `prefix=seen-&limit=${limit}`)
      expect(found.flatMap(({ agents }) => agents)).toEqual(made)
      expect(found.flatMap(({ statuses }) => statuses)).toEqual(expected)
      expect(new Set(found.map(({ total }) => total))).toEqual(new Set([12]))
    }
  })

  it('has at most 100 rows, and rejects other values of include', async () => {
    for (const query of ['include=status&limit=101', 'include=', 'include=Status', 'include=head']) {
      const refused = await checkedCall(server, `GET /v1/agents?${query}`)
      expect([query, refused.status, refused.body.code]).toEqual([query, 400, 'validation_failed'])
    }
    expect((await checkedCall(server, 'GET /v1/agents?prefix=seen-')).body.statuses).toBeUndefined()
  })

  it('shows a limited key only agents of its prefix', async () => {
    const { key } = await scopedKey(server, ['records:read'], ['seen-1*'])
    const { body } = await checkedCall(server, 'GET /v1/agents?include=status&prefix=seen-1', { key })
    expect(body.statuses.map((one: { agent_id: string }) => one.agent_id)).toEqual(['seen-10', 'seen-11'])
    for (const query of ['', '&prefix=seen-', '&prefix=default'])
      expect((await checkedCall(server, `GET /v1/agents?include=status${query}`, { key })).status).toBe(403)
    expect((await checkedCall(server, 'GET /v1/agents?include=status', { key: null })).status).toBe(401)
    const { key: writer } = await scopedKey(server, ['records:write'])
    expect((await checkedCall(server, 'GET /v1/agents?include=status', { key: writer })).status).toBe(403)
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(agentRoutes)).toEqual([])
})
