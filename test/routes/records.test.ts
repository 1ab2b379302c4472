import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { recordRoutes } from '../../src/front/routes/records.js'
import { canonicalJson } from '../../src/strand/json.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { startServer, type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const append = 'POST /v1/agents/a/records'
const batch = 'POST /v1/agents/a/records/batch'

/** A refused write on agent `a`, which must leave no trace. */
async function refused(route: string, options: TestCall): Promise<[number, string]> {
  const { status, body } = await expectUnchanged(server, 'a', () => checkedCall(server, route, options))
  return [status, body.code]
}

/** A record's body of `depth` levels, its own object among them. */
const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`

/** A record's body whose canonical form has `bytes` bytes. */
const sized = (bytes: number) => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) })

describe('appending a record', () => {
  it('chains it to the head, and returns it by its hash', async () => {
    const before = await headOf(server, 'a')
    const data = { z: 1, a: [true, null, 'é', { b: -0.5e-7 }] }
    const written = await checkedCall(server, append, { body: { data, type: 'reading/v1' } })
    expect(written.status).toBe(201)
    const { record_id: id, hash, parent_hash: parent, seq } = written.body
    expect(parent).toBe(before?.chain_head)
    expect(seq).toBe((before?.seq ?? 0) + 1)
    expect(hash).toBe(`sha256:${id}`)
    expect([written.body.id, written.body.content_hash]).toEqual([id, id])
    for (const name of [id, `sha256:${id}`, `sha256%3A${id}`]) {
      const { body } = await checkedCall(server, `GET /v1/agents/a/records/${name}`)
      expect(body).toMatchObject({ record_id: id, type: 'reading/v1', payload: data, deleted: false, seq })
    }
    expect((await headOf(server, 'a'))?.chain_head).toBe(id)
  })

  it('stores the canonical form, with the default type record', async () => {
    const raw = '{"data": {"b": 1.0, "a": 1e3, "10": 0.1, "9": -0, "\\u0061b": 1e-400}}'
    const { body } = await checkedCall(server, append, { raw })
    const { text } = await checkedCall(server, `GET /v1/agents/a/records/${body.id}`)
    expect(text).toContain('"payload":{"10":0.1,"9":0,"a":1000,"ab":0,"b":1}')
    expect(text).toContain('"type":"record"')
  })

  it('creates a collection at its first write, in zone governed, but no agent', async () => {
    const first = await checkedCall(server, 'POST /v1/collections/fresh/records', {
      body: { data: { n: 1 } },
    })
    expect([first.status, first.body.seq]).toEqual([201, 1])
    expect((await checkedCall(server, 'GET /v1/agents/fresh/status')).body.zone).toBe('governed')
    const missing = await checkedCall(server, 'POST /v1/agents/never/records', { body: { data: {} } })
    expect([missing.status, missing.body.code]).toEqual([404, 'agent_not_found'])
    expect(await headOf(server, 'never')).toBeUndefined()
    const bad = await checkedCall(server, 'POST /v1/collections/never/records', { body: { data: 1 } })
    expect(bad.status).toBe(400)
    expect(await headOf(server, 'never')).toBeUndefined()
  })

  it('accepts collection names that are valid agent names, but none of an organism', async () => {
    for (const name of ['a::b', '.x', 'x y', 'x'.repeat(129), 'a/b', '']) {
      const path = encodeURIComponent(name)
      const { status } = await checkedCall(server, `POST /v1/collections/${path}/records`, {
        body: { data: {} },
      })
      expect([name, status]).toEqual([name, name === '' ? 404 : 400])
    }
    const organism = await checkedCall(server, 'POST /v1/agents/a::b/records', { body: { data: {} } })
    expect([organism.status, organism.body.code]).toEqual([404, 'agent_not_found'])
  })

  it.each([
    ['nothing', ''],
    ['a list', '[]'],
    ['no data', '{}'],
    ['data that is a list', '{"data":[]}'],
    ['data that is null', '{"data":null}'],
    ['data that is a text', '{"data":"x"}'],
    ['another member', '{"data":{},"extra":1}'],
    ['a type that is null', '{"data":{},"type":null}'],
    ['a type that is a number', '{"data":{},"type":1}'],
    ['an empty type', '{"data":{},"type":""}'],
    ['a type of 65 characters', `{"data":{},"type":"${'t'.repeat(65)}"}`],
    ['a type in capitals', '{"data":{},"type":"Reading"}'],
    ['a type with a line break', '{"data":{},"type":"a\\nb"}'],
    ['two values', '{"data":{}}{}'],
    ['two byte order marks', '\ufeff\ufeff{"data":{}}'],
    ['a duplicate key', '{"data":{"a":1,"a":1}}'],
    ['a duplicate key, one of them escaped', '{"data":{"a":1,"\\u0061":1}}'],
    ['a duplicate key further in', '{"data":{"x":[{"a":1,"b":2,"a":3}]}}'],
    ['a duplicate member data', '{"data":{},"data":{}}'],
    ['a lone surrogate', '{"data":{"a":"\\ud800"}}'],
    ['a lone surrogate in a key', '{"data":{"\\udc00":1}}'],
    ['surrogates the wrong way round', '{"data":{"a":"\\udc00\\ud800"}}'],
    ['a key __proto__', '{"data":{"__proto__":{}}}'],
    ['a key __proto__, escaped', '{"data":{"\\u005f_proto__":1}}'],
    ['NUL in a key', '{"data":{"a\\u0000":1}}'],
    ['1e400', '{"data":{"a":1e400}}'],
    ['-1e400', '{"data":{"a":-1e400}}'],
    ['2^53', '{"data":{"a":9007199254740992}}'],
    ['-2^53', '{"data":{"a":-9007199254740992}}'],
    ['an integer of 40 digits', `{"data":{"a":${'9'.repeat(40)}}}`],
    ['65 levels', `{"data":${nested(65)}}`],
    ['a million levels', `{"data":{"a":${'['.repeat(1_000_000)}}}`],
    ['NaN', '{"data":{"a":NaN}}'],
  ])('answers 400 for %s', async (_what, raw) => {
    expect(await refused(append, { raw })).toEqual([400, 'validation_failed'])
  })

  it.each([
    ['POST /v1/agents/default/records', '{"data": {"a": 1,}}', 'line 1, column 18'],
    [
      'POST /v1/agents/default/records/batch',
      '{"records": [\n  {"data": {}},\n  {"data" {}}]}',
      'line 3, column 11',
    ],
    ['POST /v1/agents/default/records/batch', '{"records": [{"data": {}}', 'line 1, column 26'],
    ['POST /v1/ingest/default', '{\n"a": }', 'line 2, column 6'],
    ['POST /v1/agents/default/query', '{"type": latest}', 'line 1, column 10'],
    ['POST /v1/agents', '{"name": "a"', 'line 1, column 13'],
  ])('%s reports where the body %j is invalid JSON', async (route, raw, position) => {
    const { status, body } = await checkedCall(server, route, { raw })
    expect([status, body.code]).toEqual([400, 'validation_failed'])
    expect(body.detail).toContain(`at ${position} there should be `)
  })

  it('reports every error of a record: unknown members, a missing one and a wrong one', async () => {
    const one = { x: 1, 'y/z': 2, type: 'A B' }
    const single = await checkedCall(server, append, { body: one })
    const pointers = (faults: { pointer: string }[]) => faults.map(({ pointer }) => pointer)
    expect(pointers(single.body.errors)).toEqual(['/x', '/y~1z', '/type', '/data'])
    expect(single.body.errors[3].detail).toBe('Missing member "data"')
    const batch = await checkedCall(server, 'POST /v1/agents/default/records/batch', {
      body: { records: [{ data: {} }, one, {}] },
    })
    expect(pointers(batch.body.errors)).toEqual([
      ...pointers(single.body.errors).map((pointer) => `/records/1${pointer}`),
      '/records/2/data',
    ])
  })

  it('limits the list of errors and the length of names in it', async () => {
    const members = Array.from({ length: 50 }, (_none, at) => [`${'n'.repeat(1_000)}${at}`, 1])
    for (const route of [append, 'POST /v1/agents']) {
      const { status, text, body } = await checkedCall(server, route, { body: Object.fromEntries(members) })
      expect([status, body.code]).toEqual([400, 'validation_failed'])
      expect(body.errors.length).toBeLessThanOrEqual(limits.faultsMax + 1)
      expect(text.length).toBeLessThan(8_192)
    }
  })

  it('answers 400 for bytes that are not UTF-8', async () => {
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const raw = Buffer.concat([Buffer.from('{"data":{"a":"'), Buffer.from(bytes), Buffer.from('"}}')])
      expect(await refused(append, { raw })).toEqual([400, 'validation_failed'])
    }
  })

  it('accepts values at the limits: 64 levels, ±(2^53-1), surrogate pairs, NUL in a text, large doubles', async () => {
    const bodies = [
      nested(64),
      '{"a":[9007199254740991,-9007199254740991,9007199254740993.0,1e308,5e-324]}',
      '{"a":"\\ud83d\\ude00","b":"\\u0000","proto":1,"constructor":{"prototype":1},"":0}',
      '{}',
    ]
    for (const data of bodies) {
      const { status, body } = await checkedCall(server, append, { raw: `{"data":${data}}` })
      expect([data.slice(0, 40), status]).toEqual([data.slice(0, 40), 201])
      const { text } = await checkedCall(server, `GET /v1/agents/a/records/${body.id}`)
      expect(text).toContain(`"payload":${canonicalJson(JSON.parse(data))},`)
    }
  })

  it('answers 400 for types of the server, and accepts similar ones', async () => {
    for (const type of ['sys/genesis', 'sys/', 'auth/login', 'edge/add']) {
      expect(await refused(append, { body: { data: {}, type } })).toEqual([400, 'reserved_type'])
    }
    for (const type of ['sys', 'system/x', 'authx/y', 't'.repeat(64), 'a.b_c-d/e']) {
      expect((await checkedCall(server, append, { body: { data: {}, type } })).status).toBe(201)
    }
  })

  it('accepts 262,144 bytes of canonical body, and no more', async () => {
    expect((await checkedCall(server, append, { body: { data: sized(262_144) } })).status).toBe(201)
    expect(await refused(append, { body: { data: sized(262_145) } })).toEqual([413, 'too_large'])
    const spaced = `${' '.repeat(500_000)}{"data":${JSON.stringify(sized(262_144))}}`
    expect((await checkedCall(server, append, { raw: spaced })).status).toBe(201)
  })

  it('answers 413 for a body that is longer than any record', async () => {
    expect(await refused(append, { raw: ' '.repeat(3_000_000) })).toEqual([413, 'too_large'])
  })

  it('answers 415 for a compressed body', async () => {
    const headers = { 'content-encoding': 'gzip' }
    expect(await refused(append, { raw: '{"data":{}}', headers })).toEqual([415, 'unsupported_media_type'])
    const other = await checkedCall(server, 'POST /v1/agents', {
      raw: '{"name":"coded","zone":"free"}',
      headers,
    })
    expect([other.status, other.headers.get('accept-encoding')]).toEqual([415, 'identity'])
    expect(await headOf(server, 'coded')).toBeUndefined()
  })

  it('requires a key with the scope', async () => {
    const { key } = await scopedKey(server, ['records:read', 'ingest'])
    expect(await refused(append, { body: { data: {} }, key })).toEqual([403, 'forbidden'])
    expect(await refused(append, { body: { data: {} }, key: null })).toEqual([401, 'unauthorized'])
    expect(await refused(batch, { body: { records: [{ data: {} }] }, key })).toEqual([403, 'forbidden'])
  })

  it('orders concurrent writes', async () => {
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const racing = Array.from({ length: 64 }, (_none, n) =>
      checkedCall(server, append, { body: { data: { n } } }),
    )
    const written = (await Promise.all(racing)).map(({ body }) => body).sort((x, y) => x.seq - y.seq)
    expect(written.map(({ seq }) => seq)).toEqual(written.map((_one, position) => before + 1 + position))
    for (const [position, { parent_hash: parent }] of written.entries()) {
      if (position > 0) expect(parent).toBe(written[position - 1].content_hash)
    }
    const clocks = written.map(({ timestamp_hlc: hlc }) => hlc)
    expect(new Set(clocks).size).toBe(64)
    expect([...clocks].sort()).toEqual(clocks)
  })
})

describe('If-Match', () => {
  it('accepts a write at the named head, and answers 412 with the current head otherwise', async () => {
    const head = (await headOf(server, 'a'))?.chain_head ?? ''
    const body = { data: { n: 1 } }
    const headers = { 'if-match': `"${head}"` }
    const written = await checkedCall(server, append, { body, headers })
    expect(written.status).toBe(201)
    const late = await expectUnchanged(server, 'a', () => checkedCall(server, append, { body, headers }))
    expect([late.status, late.body.code]).toEqual([412, 'head_mismatch'])
    expect(late.body.chain_head).toBe(written.body.content_hash)
    const prefixed = { 'if-match': `"${written.body.hash}"` }
    expect((await checkedCall(server, append, { body, headers: prefixed })).status).toBe(201)
  })

  it('lets one of many concurrent writers succeed', async () => {
    const headers = { 'if-match': `"${(await headOf(server, 'a'))?.chain_head}"` }
    const racing = Array.from({ length: 16 }, (_none, n) =>
      checkedCall(server, append, { body: { data: { n } }, headers }),
    )
    const statuses = (await Promise.all(racing)).map(({ status }) => status).sort()
    expect(statuses).toEqual([201, ...Array.from({ length: 15 }, () => 412)])
  })

  it('applies to a batch, and to a missing collection', async () => {
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    expect(await refused(batch, { body: { records: [{ data: {} }] }, headers: stale })).toEqual([
      412,
      'head_mismatch',
    ])
    const missing = await checkedCall(server, 'POST /v1/collections/unborn/records', {
      body: { data: {} },
      headers: stale,
    })
    expect([missing.status, missing.body.chain_head]).toEqual([412, null])
    expect(await headOf(server, 'unborn')).toBeUndefined()
  })

  it('accepts lists and *, and compares strongly: a weak tag or an invalid hash matches nothing', async () => {
    const head = async () => `"${(await headOf(server, 'a'))?.chain_head}"`
    const write = async (value: string) =>
      (await checkedCall(server, append, { body: { data: {} }, headers: { 'if-match': value } })).status
    const other = `"${'0'.repeat(64)}"`
    for (const value of [`${other}, ${await head()}`, '*']) expect(await write(value)).toBe(201)
    expect(await write(`W/"x" ,, ${await head()},"a,b"`)).toBe(201)
    for (const value of [`W/${await head()}`, `${other},"x"`, '""', `"${'0'.repeat(63)}"`]) {
      const stale = { body: { data: {} }, headers: { 'if-match': value } }
      expect(await refused(append, stale), value).toEqual([412, 'head_mismatch'])
    }
    const unborn = { body: { data: {} }, headers: { 'if-match': '*' } }
    expect((await checkedCall(server, 'POST /v1/collections/unborn/records', unborn)).status).toBe(412)
  })

  it('answers 400 for a head without quotes', async () => {
    for (const value of ['x', '0'.repeat(64), `"${'0'.repeat(64)}`, '"a" "b"', '"a b"', 'w/"a"', '"a",*']) {
      const headers = { 'if-match': value }
      expect(await refused(append, { body: { data: {} }, headers }), value).toEqual([
        400,
        'validation_failed',
      ])
    }
  })
})

describe('Idempotency-Key', () => {
  it('is scoped to an agent: the same key and body for another agent is another write', async () => {
    const headers = { 'idempotency-key': 'one-key-two-agents' }
    const first = await newAgent(server, 'first-of-two')
    const second = await newAgent(server, 'second-of-two')
    for (const agent of [first, second]) {
      const written = await checkedCall(server, `POST /v1/agents/${agent}/records`, {
        body: { data: { n: 1 } },
        headers,
      })
      expect(written.status).toBe(201)
      expect(written.headers.get('idempotency-replayed')).toBeNull()
      expect(written.body.agent).toBe(agent)
    }
  })

  const once = (key: string, data: unknown) =>
    checkedCall(server, append, { body: { data }, headers: { 'idempotency-key': key } })

  it('repeats the first answer, and writes once', async () => {
    const first = await once('k1', { n: 1 })
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const again = await expectUnchanged(server, 'a', () => once('k1', { n: 1 }))
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
  })

  it('answers 422 for another body, another type and another route', async () => {
    await once('k2', { n: 1 })
    const headers = { 'idempotency-key': 'k2' }
    const others: [string, unknown][] = [
      [append, { data: { n: 2 } }],
      [append, { data: { n: 1 }, type: 'other' }],
      [batch, { records: [{ data: { n: 1 } }] }],
    ]
    for (const [route, body] of others) {
      expect(await refused(route, { body, headers })).toEqual([422, 'idempotency_key_reused'])
    }
  })

  // Another client, or the same one after a restart, may write the same JSON in another order.
  it('recognizes the same JSON with other white space or order of members', async () => {
    const sent = (route: string, key: string, raw: string) =>
      checkedCall(server, route, { raw, headers: { 'idempotency-key': key } })
    const pairs: [route: string, one: string, other: string, third: string][] = [
      [
        append,
        '{"data":{"a":1,"b":[1e2]},"type":"record"}',
        ' { "data": {"b": [100.0], "a": 1} } ',
        '{"data":{"a":1,"b":[100,1]}}',
      ],
      [
        batch,
        '{"records":[{"data":{"a":1,"b":2}},{"data":{},"type":"t"}]}',
        '{"atomic":true, "records":[{"data":{"b":2,"a":1}}, {"type":"t","data":{}}]}',
        '{"records":[{"data":{},"type":"t"},{"data":{"a":1,"b":2}}]}',
      ],
      ['POST /v1/ingest/a', '{"a":1,"b":"\\u0041"}', '{"b":"A","a":1}', '{"a":1}'],
      [
        'POST /v1/agents',
        '{"name":"made-once","zone":"free"}',
        '{"zone":"free","name":"made-once"}',
        '{"zone":"governed","name":"made-once"}',
      ],
    ]
    for (const [n, [route, one, other, third]] of pairs.entries()) {
      const first = await sent(route, `json-${n}`, one)
      expect([route, first.status]).toEqual([route, 201])
      const again = await expectUnchanged(server, 'a', () => sent(route, `json-${n}`, other))
      expect([again.status, again.text], route).toEqual([201, first.text])
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      const refusal = await expectUnchanged(server, 'a', () => sent(route, `json-${n}`, third))
      expect([refusal.status, refusal.body.code], route).toEqual([422, 'idempotency_key_reused'])
    }
  })

  it('writes once for concurrent requests', async () => {
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const answers = await Promise.all(Array.from({ length: 20 }, () => once('k3', { n: 1 })))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter((one) => one.headers.get('idempotency-replayed') === 'true').length).toBe(19)
    expect((await headOf(server, 'a'))?.seq).toBe(before + 1)
  })

  it('writes a batch once, while other clients write', async () => {
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const body = { records: [{ data: { n: 1 } }, { data: { n: 2 } }] }
    const headers = { 'idempotency-key': 'k4' }
    const [answers] = await Promise.all([
      Promise.all(Array.from({ length: 8 }, () => checkedCall(server, batch, { body, headers }))),
      Promise.all(Array.from({ length: 8 }, (_none, n) => once(`k4-${n}`, { n }))),
    ])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect((await headOf(server, 'a'))?.seq).toBe(before + 10)
  })

  it('is scoped to the caller, and is not used up by a refusal', async () => {
    const { key } = await scopedKey(server, ['records:write'])
    const headers = { 'idempotency-key': 'k5' }
    expect((await checkedCall(server, append, { body: { data: 1 }, headers })).status).toBe(400)
    const mine = await checkedCall(server, append, { body: { data: { n: 1 } }, headers })
    const theirs = await checkedCall(server, append, { body: { data: { n: 1 } }, headers, key })
    expect(mine.status).toBe(201)
    expect(theirs.body.id).not.toBe(mine.body.id)
  })

  it('has at most 255 characters', async () => {
    expect((await once('x'.repeat(255), {})).status).toBe(201)
    const headers = { 'idempotency-key': 'x'.repeat(256) }
    expect(await refused(append, { body: { data: {} }, headers })).toEqual([400, 'validation_failed'])
  })
})

describe('a batch', () => {
  const items = (count: number) => Array.from({ length: count }, (_none, n) => ({ data: { n } }))

  it('answers in order, each record chained to the one before', async () => {
    const records = [{ data: { n: 1 } }, { data: { n: 2 }, type: 'other' }, { data: { n: 3 } }]
    const { status, body } = await checkedCall(server, batch, { body: { records } })
    expect(status).toBe(201)
    const [one, two, three] = body.results
    expect([two.parent_hash, three.parent_hash]).toEqual([one.content_hash, two.content_hash])
    const shown = await checkedCall(server, `GET /v1/agents/a/records/${two.id}`)
    expect(shown.body).toMatchObject({ type: 'other', payload: { n: 2 } })
    const emerged = await checkedCall(server, 'POST /v1/collections/batched/records/batch', {
      body: { records },
    })
    expect(emerged.body.results.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3])
  })

  it('is written all or none, and reports every error', async () => {
    const records = [{ data: {} }, { data: 1 }, { data: {}, type: 'sys/x' }, { data: {} }]
    const answer = await expectUnchanged(server, 'a', () => checkedCall(server, batch, { body: { records } }))
    expect(answer.status).toBe(400)
    const pointers = answer.body.errors.map((fault: { pointer: string }) => fault.pointer)
    expect(pointers).toEqual(['/records/1/data', '/records/2/type'])
    const emerging = await checkedCall(server, 'POST /v1/collections/none/records/batch', {
      body: { records },
    })
    expect(emerging.status).toBe(400)
    expect(await headOf(server, 'none')).toBeUndefined()
  })

  it('reports an error for each invalid item if it is not atomic', async () => {
    const records = [{ data: { n: 1 } }, { data: 1 }, { data: {}, type: 'sys/x' }, { data: sized(262_145) }]
    const { status, body } = await checkedCall(server, batch, { body: { records, atomic: false } })
    expect(status).toBe(201)
    expect(body.results[0].seq).toBe((await headOf(server, 'a'))?.seq)
    const codes = body.results.slice(1).map((one: { error: { code: string } }) => one.error.code)
    expect(codes).toEqual(['validation_failed', 'reserved_type', 'too_large'])
  })

  it('has at least 1 and at most 1,000 records', async () => {
    const full = await checkedCall(server, batch, { body: { records: items(1_000) } })
    expect([full.status, full.body.results.length]).toEqual([201, 1_000])
    expect(await refused(batch, { body: { records: items(1_001) } })).toEqual([413, 'too_large'])
    expect(await refused(batch, { body: { records: [] } })).toEqual([400, 'validation_failed'])
  })

  it('has at most 8 MiB', async () => {
    const bytes = 8_388_608
    const records = Array.from({ length: 30 }, () => ({ data: sized(262_144) }))
    const body = JSON.stringify({ records })
    const full = await checkedCall(server, batch, { raw: body.padEnd(bytes) })
    expect([full.status, full.body.results.length]).toEqual([201, 30])
    expect(await refused(batch, { raw: body.padEnd(bytes + 1) })).toEqual([413, 'too_large'])
  })

  it.each([
    ['records that are not a list', { records: {} }],
    ['no records', { atomic: true }],
    ['atomic that is not a boolean', { records: [{ data: {} }], atomic: 1 }],
    ['atomic that is null', { records: [{ data: {} }], atomic: null }],
    ['another member', { records: [{ data: {} }], all: true }],
    ['an item that is not an object', { records: [1] }],
  ])('answers 400 for %s', async (_what, body) => {
    expect(await refused(batch, { body })).toEqual([400, 'validation_failed'])
  })

  it('limits each body, not the whole, to 64 levels', async () => {
    expect((await checkedCall(server, batch, { raw: `{"records":[{"data":${nested(64)}}]}` })).status).toBe(
      201,
    )
    const deep = `{"records":[{"data":${nested(65)}}]}`
    expect(await refused(batch, { raw: deep })).toEqual([400, 'validation_failed'])
  })

  it('is signed as a group on request', async () => {
    const { body } = await checkedCall(server, `${batch}?signing=group`, { body: { records: items(3) } })
    const [one, two, three] = body.results
    expect([one.signature, one.sealed_by]).toEqual([null, three.seq])
    expect([two.signature, two.sealed_by]).toEqual([null, three.seq])
    expect(three.signature).toMatch(/^[0-9a-f]{128}$/)
    const shown = await checkedCall(server, `GET /v1/agents/a/records/${one.id}`)
    expect(shown.body).toMatchObject({ signature: null, sealed_by: three.seq })
    const other = await refused(`${batch}?signing=none`, { body: { records: items(1) } })
    expect(other).toEqual([400, 'validation_failed'])
  })
})

describe('reading a record', () => {
  it('answers 404 for an unknown hash and that of another agent, and 400 for an invalid hash', async () => {
    const { body } = await checkedCall(server, 'POST /v1/collections/elsewhere/records', {
      body: { data: {} },
    })
    for (const hash of ['0'.repeat(64), body.id]) {
      const missing = await checkedCall(server, `GET /v1/agents/a/records/${hash}`)
      expect([missing.status, missing.body.code]).toEqual([404, 'record_not_found'])
    }
    const absent = await checkedCall(server, `GET /v1/agents/absent/records/${body.id}`)
    expect([absent.status, absent.body.code]).toEqual([404, 'agent_not_found'])
    for (const hash of ['x', body.id.slice(1), body.id.toUpperCase(), `sha1:${body.id}`, 'batch']) {
      const bad = await checkedCall(server, `GET /v1/agents/a/records/${hash}`)
      expect([bad.status, bad.body.code]).toEqual([400, 'validation_failed'])
    }
  })
})

describe('finding a record by its hash', () => {
  const find = (hash: string, call: TestCall = {}) => checkedCall(server, `GET /v1/records/${hash}`, call)
  const agentsIn = ({ body }: { body: { records: { agent: string }[] } }) =>
    body.records.map(({ agent }) => agent)

  it('finds it among all agents, by the whole hash or the first 8 or more digits', async () => {
    for (const name of ['found-1', 'found-2', 'found-3', 'found-4']) {
      const written = await checkedCall(server, `POST /v1/collections/${name}/records`, {
        body: { data: { name }, type: 'reading' },
      })
      const { id, hash, seq, timestamp_hlc, timestamp_ms } = written.body
      const shown = { agent: name, record_id: id, seq, type: 'reading', timestamp_hlc, timestamp_ms }
      for (const digits of [id, hash, id.slice(0, 8), id.slice(0, 17), `sha256:${id.slice(0, 8)}`]) {
        const { status, body } = await find(digits)
        expect([status, body]).toEqual([200, { records: [shown] }])
      }
      const last = id.endsWith('0') ? '1' : '0'
      expect((await find(id.slice(0, -1) + last)).status).toBe(404)
    }
  })

  it('finds deleted records and those of the server', async () => {
    await checkedCall(server, 'POST /v1/agents', { body: { name: 'cleared', zone: 'free' } })
    const { body } = await checkedCall(server, 'POST /v1/agents/cleared/records', { body: { data: {} } })
    const removed = await checkedCall(server, `DELETE /v1/agents/cleared/records/${body.id}`)
    expect(removed.body.state).toBe('deleted')
    expect(agentsIn(await find(body.id.slice(0, 8)))).toEqual(['cleared'])
    const head = await checkedCall(server, 'GET /v1/agents/cleared/head')
    expect((await find(head.body.chain_head)).body.records[0].type).toBe('sys/tombstone')
  })

  it('shows a limited key only records of its agents, and the audit strand only to an administrator', async () => {
    const { body } = await checkedCall(server, 'POST /v1/collections/reached/records', { body: { data: {} } })
    const { key } = await scopedKey(server, ['records:read'], ['reached'])
    const { key: other } = await scopedKey(server, ['records:read'], ['elsewhere*'])
    const { key: writer } = await scopedKey(server, ['records:write'])
    expect(agentsIn(await find(body.id, { key }))).toEqual(['reached'])
    const hidden = await find(body.id, { key: other })
    expect([hidden.status, hidden.body.code]).toEqual([404, 'record_not_found'])
    expect((await find(body.id, { key: writer })).status).toBe(403)
    expect((await find(body.id, { key: null })).status).toBe(401)
    const audit = (await checkedCall(server, 'GET /v1/agents/server::audit/head')).body.chain_head
    const { key: reader } = await scopedKey(server, ['records:read'])
    expect(agentsIn(await find(audit))).toEqual(['server::audit'])
    expect((await find(audit, { key: reader })).status).toBe(404)
  })

  it('answers 400 for fewer digits, and for any other text', async () => {
    for (const hash of [
      '1234567',
      '',
      'x'.repeat(8),
      'ABCDEF01',
      '0'.repeat(65),
      'sha1:12345678',
      '1234567%00',
    ]) {
      const bad = await find(hash)
      expect([hash, bad.status]).toEqual([hash, hash === '' ? 404 : 400])
    }
  })
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(recordRoutes)).toEqual([])
})
