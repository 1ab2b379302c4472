// @run through a standby
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf, expectUnchanged, newAgent } from '../../support/http/answers.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const send = (path: string, raw: string | Uint8Array, headers: Record<string, string> = {}) =>
  checkedCall(server, `POST /v1/ingest${path}`, {
    raw,
    headers: { 'content-type': 'application/json', ...headers },
  })

async function payloads(agent: string): Promise<unknown[]> {
  const found: unknown[] = []
  let cursor: string | undefined
  do {
    const types = ['record', 'ingest/rejected']
    const body = { type: 'time_range', limit: 1_000, types, ...(cursor && { cursor }) }
    const page = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })
    found.push(...page.body.records.map((record: { payload: unknown }) => record.payload))
    cursor = page.body.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}

describe('an array for one agent', () => {
  it('becomes one record per element, in order, with any values', async () => {
    const elements = [{ n: 0 }, { text: '],[{"\\"}\\\\' }, { deep: [[1, 2], { a: [] }] }, { 'é,': '\n' }]
    for (const [agent, raw] of [
      ['compact', JSON.stringify(elements)],
      ['pretty', `\r\n \t${JSON.stringify(elements, null, 2)}\n`],
    ] as const) {
      const { status, body } = await send(`/${agent}`, raw)
      expect([status, body]).toMatchObject([200, { accepted: 4, rejected: 0, first_seq: 1, last_seq: 4 }])
      expect(await payloads(agent)).toEqual(elements)
    }
    const packed = await send('/packed', gzipSync(JSON.stringify(elements)), { 'content-encoding': 'gzip' })
    expect(packed.body.accepted).toBe(4)
  })

  it('is accepted with any media type that ends in +json, and without one', async () => {
    for (const type of ['application/vnd.kafka.json.v2+json', 'application/ld+JSON; charset=utf-8']) {
      expect((await send('/typed', '[{}]', { 'content-type': type })).status).toBe(200)
      expect((await send('/typed', '{}', { 'content-type': type })).status).toBe(201)
    }
    expect((await send('/typed', '[{}]', { 'content-type': 'text/json+xml' })).status).toBe(415)
  })

  it('can be empty', async () => {
    expect((await send('/unborn', ' [ ] ')).body).toMatchObject({ accepted: 0, rejected: 0 })
    expect(await headOf(server, 'unborn')).toBeUndefined()
  })

  it('can be longer than a batch, and arrive in any parts', async () => {
    const elements = Array.from({ length: 5_000 }, (_none, n) => ({ n, text: 'x'.repeat(n % 300) }))
    const headers = { 'idempotency-key': 'long' }
    const first = await send('/long', JSON.stringify(elements), headers)
    expect(first.body).toMatchObject({ accepted: 5_000, last_seq: 5_000 })
    const again = await send('/long', JSON.stringify(elements), headers)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
  })

  it('has its elements refused individually, by number', async () => {
    const raw = '[{"n":1},7,{"a":1,"a":2},[{}],{"n":1} {"n":2},{"a":"x\ny"},{"a":},{"n":2}]'
    const { status, body } = await send('/mixed', raw)
    expect([status, body.accepted, body.rejected]).toEqual([200, 2, 6])
    expect(body.errors.map(({ line }: { line: number }) => line)).toEqual([2, 3, 4, 5, 6, 7])
    const kept = await send('/mixed-kept?on_error=keep', raw)
    expect([kept.status, kept.body.kept]).toEqual([200, 6])
    const all = await expectUnchanged(server, 'mixed', () => send('/mixed?on_error=reject_all', raw))
    expect([all.status, all.body.code]).toEqual([422, 'ingest_rejected'])
    expect((await send('/mixed?on_error=reject_all', '[{},{}]')).body.accepted).toBe(2)
  })

  const malformed = [
    '[',
    '[{}',
    '[{},',
    '[{},]',
    '[,{}]',
    '[{},,{}]',
    '[{}]]',
    '[{}] {}',
    '[{}}',
    '[}',
    '[{"a":"]',
  ]

  // Regression: `[{…},{…},]` was 400, but wrote two records each time it was sent.
  it('is answered 400 if it is incomplete, and nothing of it is written', async () => {
    const long = `[${'{"n":1},'.repeat(40_000)}]`
    for (const raw of [...malformed, '[{}]\n[{}]', long]) {
      for (const query of ['', '?on_error=reject_all']) {
        const { status, body } = await expectUnchanged(server, 'mixed', () => send(`/mixed${query}`, raw))
        expect([raw.slice(0, 20), status, body.code]).toEqual([raw.slice(0, 20), 400, 'validation_failed'])
      }
    }
    const cut = gzipSync(JSON.stringify(Array.from({ length: 50_000 }, (_none, n) => ({ n })))).subarray(
      0,
      -4,
    )
    for (const raw of [cut, gzipSync('{"n":1}').subarray(0, -4)]) {
      const zipped = await expectUnchanged(server, 'mixed', () =>
        send('/mixed', raw, { 'content-encoding': 'gzip' }),
      )
      expect([zipped.status, zipped.body.code]).toEqual([400, 'validation_failed'])
    }
  })

  it('is stored whole with on_error=keep if it is incomplete', async () => {
    const long = `[${'{"n":1},'.repeat(40_000)}]`
    for (const raw of [...malformed, '[{}]\n[{}]\n', long]) {
      const { status, body } = await send('/damaged?on_error=keep', raw)
      expect([raw.slice(0, 20), status, body]).toMatchObject([
        raw.slice(0, 20),
        200,
        { accepted: 0, rejected: 1, kept: 1, errors: [{ line: 1, code: 'validation_failed' }] },
      ])
    }
    const texts = (await payloads('damaged')).map((kept) => (kept as { text: string }).text)
    expect(texts.slice(0, malformed.length + 1)).toEqual([...malformed, '[{}]\n[{}]\n'])
    expect(texts.slice(malformed.length + 1).join('')).toBe(long)
  })

  it('is answered 413 if it is too long to be buffered', async () => {
    const raw = Buffer.from('[{}]'.padEnd(16_777_217))
    for (const query of ['', '?on_error=keep']) {
      const { status, body } = await expectUnchanged(server, 'mixed', () => send(`/mixed${query}`, raw))
      expect([status, body.code, body.detail]).toMatchObject([
        413,
        'too_large',
        expect.stringContaining('16777216 bytes'),
      ])
    }
    const { body } = await send('/mixed', raw.subarray(0, -1))
    expect([body.accepted, body.rejected]).toEqual([1, 0])
  })

  it('honours If-Match', async () => {
    const head = (await headOf(server, 'mixed'))?.chain_head
    const headers = { 'if-match': `"${head}"` }
    expect((await send('/mixed', '[{},{}]', headers)).status).toBe(200)
    expect((await send('/mixed', '[{},{}]', headers)).status).toBe(412)
  })
})

describe('an array for many agents', () => {
  it('is distributed to the agents of its elements {agent, data, type?}', async () => {
    const raw = JSON.stringify(
      [{ agent: 'x', data: { n: 1 } }, { agent: 'y', data: { n: 2 }, type: 'reading' }, { n: 3 }],
      null,
      1,
    )
    const { status, body } = await send('', raw)
    expect([status, body]).toMatchObject([200, { accepted: 2, rejected: 1, errors: [{ line: 3 }] }])
    expect(Object.keys(body.agents)).toEqual(['x', 'y'])
  })

  it('is required for JSON on this route, unless it is objects on lines or one object', async () => {
    for (const raw of ['', '7', '"text"']) {
      const { status, body } = await send('', raw)
      expect([raw, status, body.code]).toEqual([raw, 400, 'validation_failed'])
    }
    const one = { agent: 'single', data: { n: 1 } }
    for (const raw of [JSON.stringify(one), `${JSON.stringify(one, null, 2)}\n`]) {
      expect((await send('', raw)).body).toMatchObject({ accepted: 1, agents: { single: { accepted: 1 } } })
    }
    const lines = await send(
      '',
      `${JSON.stringify(one)}\nbad\n${JSON.stringify({ ...one, agent: 'pair' })}\n`,
    )
    expect([lines.status, lines.body]).toMatchObject([200, { accepted: 2, errors: [{ line: 2 }] }])
    expect(Object.keys(lines.body.agents)).toEqual(['pair', 'single'])
    const kept = await send('?on_error=keep&rejected_agent=odd', '{"agent":"single"}}')
    expect([kept.status, kept.body.kept]).toEqual([200, 1])
    expect(await payloads('single')).toMatchObject([
      { n: 1 },
      { n: 1 },
      { n: 1 },
      { text: '{"agent":"single"}}' },
    ])
  })
})

// Regression: Fluent Bit, rsyslog and curl send lines as application/json; of 2,000 lines one record was
// written, or none.
describe('values on lines with a JSON media type', () => {
  it('are lines with any type, and each is refused or stored individually', async () => {
    const raw = Array.from({ length: 400 }, (_none, n) => `{"n":${n},"text":"${'x'.repeat(500)}"}`)
    for (const type of ['application/json', 'application/vnd.log+json', '']) {
      const { status, body } = await send('/lines', raw.join('\n'), { 'content-type': type })
      expect([status, body]).toMatchObject([200, { accepted: 400, rejected: 0 }])
    }
    const bad = raw.with(0, '{"cut":"in a string').with(7, '7').join('\r\n')
    const skipped = await send('/lines-bad', bad)
    expect([skipped.status, skipped.body.accepted, skipped.body.errors.length]).toEqual([200, 398, 2])
    const kept = await send('/lines-kept?on_error=keep', bad)
    expect([kept.status, kept.body]).toMatchObject([200, { accepted: 398, kept: 2 }])
    const all = await expectUnchanged(server, 'lines', () => send('/lines?on_error=reject_all', bad))
    expect([all.status, all.body.code, all.body.rejected]).toEqual([422, 'ingest_rejected', 2])
    const zipped = await send('/lines', gzipSync(raw.join('\n')), { 'content-encoding': 'gzip' })
    expect(zipped.body.accepted).toBe(400)
  })

  it('continue after a first one that is too long; alone it is a body that is too long', async () => {
    const long = `{"text":"${'x'.repeat(700_000)}"}`
    const more = await send('/lines', `${long}\n{"n":1}\n`)
    expect([more.status, more.body]).toMatchObject([200, { accepted: 1, rejected: 1, errors: [{ line: 1 }] }])
    for (const [query, raw, what] of [
      ['', `${long}\n`, 'body'],
      ['?on_error=reject_all', `${long}\n{"n":1}\n`, 'line'],
    ] as const) {
      const { status, body } = await expectUnchanged(server, 'lines', () => send(`/lines${query}`, raw))
      const detail = `Expected a ${what} of at most 589824 bytes`
      expect([status, body.code, body.detail]).toEqual([413, 'too_large', detail])
    }
  })

  it('are CloudEvents with their types, each written once', async () => {
    const event = (id: string) => JSON.stringify({ specversion: '1.0', id, source: '/s', type: 't' })
    for (const type of ['application/cloudevents+json', 'application/cloudevents-batch+json']) {
      const { status, body } = await send('/events', `${event('1')}\n${event('2')}`, { 'content-type': type })
      expect([status, body.accepted]).toEqual([200, 2])
    }
    expect((await headOf(server, 'events'))?.seq).toBe(2)
  })

  it('remain one value if it spans several lines, or in binary mode', async () => {
    expect((await send('/one', '{\n"a":1,\n"b":[\n]}')).status).toBe(201)
    const headers = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/s', 'ce-type': 't' }
    const binary = await send('/one', '{}\n{}', headers)
    expect([binary.status, binary.body.code]).toEqual([400, 'validation_failed'])
  })
})

// Editors on Windows and PowerShell write a byte order mark, or UTF-16.
describe('a text written on Windows', () => {
  it('is read without its byte order mark, or refused as UTF-16', async () => {
    await newAgent(server, 'a')
    const json = { 'content-type': 'application/json' }
    const ndjson = { 'content-type': 'application/x-ndjson' }
    const gzipped = { ...ndjson, 'content-encoding': 'gzip' }
    const bodies: [Record<string, string>, string | Uint8Array, number][] = [
      [json, '\ufeff{"n":1}', 201],
      [json, '\ufeff[{"n":1}]', 200],
      [ndjson, '\ufeff{"n":1}\n{"n":2}', 200],
      [ndjson, '\ufeff', 200],
      [gzipped, gzipSync('\ufeff{"n":1}\n'), 200],
    ]
    for (const [headers, raw, status] of bodies) {
      const answer = await checkedCall(server, 'POST /v1/ingest/marked', { raw, headers })
      expect([answer.status, answer.body.rejected ?? 0]).toEqual([status, 0])
    }
    const { status } = await checkedCall(server, 'POST /v1/agents/a/records', { raw: '\ufeff{"data":{}}' })
    expect(status).toBe(201)
    const named = 'Expected UTF-8, got UTF-16'
    for (const text of ['{"n":1}', '\ufeff{"n":1}', '\ufeff[{"n":"é"}]']) {
      const wide = Buffer.from(text, 'utf16le')
      for (const raw of [wide, Buffer.from(wide).swap16()]) {
        for (const path of ['/v1/ingest/a', '/v1/ingest', '/v1/agents/a/records']) {
          const answer = await expectUnchanged(server, 'a', () =>
            checkedCall(server, `POST ${path}`, { raw }),
          )
          expect([answer.status, answer.body.detail]).toEqual([400, named])
          if (path.includes('records')) continue
          const own = await expectUnchanged(server, 'a', () =>
            checkedCall(server, `POST ${path}`, { raw, headers: ndjson }),
          )
          expect([own.status, own.body.errors[0].detail]).toEqual([422, named])
        }
      }
    }
  })
})

describe('an array in an object, with split', () => {
  const list = {
    kind: 'EventList',
    metadata: { n: [1] },
    items: [{ id: 'a' }, { id: 'b,]}"' }],
    tail: '\n"]',
  }
  const together = list.items.map((items) => ({ ...list, items }))

  it('becomes one record per member, with or without the rest of the object', async () => {
    for (const [agent, raw] of [
      ['split', JSON.stringify(list)],
      ['split-pretty', `\r\n${JSON.stringify(list, null, 2)}\n`],
    ] as const) {
      const { status, body } = await send(`/${agent}?split=/items`, raw)
      expect([status, body]).toMatchObject([200, { accepted: 2, rejected: 0, first_seq: 1, last_seq: 2 }])
      expect((await send(`/${agent}?split=items&split_rest=drop`, raw)).body.accepted).toBe(2)
      expect(await payloads(agent)).toEqual([...together, ...list.items])
    }
    const headers = {
      'content-encoding': 'gzip',
      'content-type': 'application/vnd.docker.distribution.events.v2+json',
    }
    const packed = await send('/split-packed?split=/items', gzipSync(JSON.stringify(list)), headers)
    expect(packed.body.accepted).toBe(2)
  })

  it('is found by any path, between other members', async () => {
    const raw = '{"x":"items","a/b":[0,{"~":[1],"m\\u0065":[{"n":1},{"n":2}]}],"items":{}}'
    expect((await send('/paths?split=/a~1b/1/me&split_rest=drop', raw)).body.accepted).toBe(2)
    expect((await send('/paths?split=/a~1b/1/~0', raw)).body.accepted).toBe(1)
    expect(await payloads('paths')).toEqual([
      { n: 1 },
      { n: 2 },
      { x: 'items', 'a/b': [0, { '~': 1, me: [{ n: 1 }, { n: 2 }] }], items: {} },
    ])
  })

  it('can be empty, and has its members refused individually', async () => {
    expect((await send('/unsplit?split=/items', '{"items":[ ]}')).body).toMatchObject({
      accepted: 0,
      rejected: 0,
    })
    expect(await headOf(server, 'unsplit')).toBeUndefined()
    const raw = '{"items":[{"n":1},7,{"a":1,"a":2},{"a":},{"n":2}]}'
    const alone = await send('/split-mixed?split=/items&split_rest=drop', raw)
    expect([alone.status, alone.body.accepted]).toEqual([200, 2])
    expect(alone.body.errors.map(({ line }: { line: number }) => line)).toEqual([2, 3, 4])
    const around = await send('/split-mixed?split=/items&on_error=keep', raw)
    expect([around.status, around.body.accepted, around.body.kept]).toEqual([200, 3, 2])
    const all = await expectUnchanged(server, 'split-mixed', () =>
      send('/split-mixed?split=/items&on_error=reject_all', raw),
    )
    expect([all.status, all.body.code]).toEqual([422, 'ingest_rejected'])
    const twice = await send('/split-mixed?split=/items&dedupe=body', '{"items":[{"n":1},{"n":1}]}')
    expect(twice.body).toMatchObject({ accepted: 2, duplicates: 1 })
  })

  it('can be longer than a record, and arrive in any parts', async () => {
    const items = Array.from({ length: 5_000 }, (_none, n) => ({ n, text: 'x'.repeat(n % 300) }))
    const headers = { 'idempotency-key': 'split' }
    const first = await send('/split-long?split=/items', JSON.stringify({ kind: 'List', items }), headers)
    expect(first.body).toMatchObject({ accepted: 5_000, last_seq: 5_000 })
    const again = await send('/split-long?split=/items', JSON.stringify({ kind: 'List', items }), headers)
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
  })

  it('is answered 400, and nothing is written, if the object is incomplete or has no array there', async () => {
    for (const raw of [
      '',
      '{}',
      '7',
      '[{"items":[{}]}]',
      '{"items":{}}',
      '{"items":null}',
      '{"other":[{}]}',
      '{"items":[{}]',
      '{"items":[{},{}',
      '{"items":[{},]}',
      '{"items":[,{}]}',
      '{"items":[{}]}}',
      '{"items":[{}]} {}',
      '{"items":[{}]}\n{"items":[{}]}',
      '{"items":[{}],"items":[{}]}',
      '{"items":[{}],"a":}',
      '{"items":[{}],"__proto__":1}',
      '{"items":[{}],"n":9007199254740993}',
      '{"\\x":1,"items":[{}]}',
      Buffer.concat([Buffer.from('{"items":[{}],"a":"'), Buffer.from([0xff]), Buffer.from('"}')]),
    ]) {
      for (const query of ['', '&split_rest=drop', '&on_error=reject_all']) {
        const refused = await expectUnchanged(server, 'split', () => send(`/split?split=/items${query}`, raw))
        expect([String(raw), refused.status, refused.body.code]).toEqual([
          String(raw),
          400,
          'validation_failed',
        ])
      }
    }
    const large = await send('/split?split=/items&integers=text', '{"n":9007199254740993,"items":[{}]}')
    expect(large.status).toBe(200)
  })

  it('is stored whole with on_error=keep if it is incomplete or has no array there', async () => {
    for (const raw of ['{"items":[{}]', '{"items":[{},]}', '{"items":null}', '{"items":[{}],"a":}']) {
      const { status, body } = await send('/split-kept?split=/items&on_error=keep', raw)
      expect([raw, status, body]).toMatchObject([raw, 200, { accepted: 0, rejected: 1, kept: 1 }])
      expect((await payloads('split-kept')).at(-1)).toMatchObject({ text: raw })
    }
    const utf16 = Buffer.from('{"items":[{}]}', 'utf16le')
    const refused = await send('/split-kept?split=/items', utf16)
    expect([refused.status, refused.body.detail]).toEqual([400, 'Expected UTF-8, got UTF-16'])
    const cut = gzipSync('{"items":[{}]}').subarray(0, 20)
    const broken = await expectUnchanged(server, 'split-kept', () =>
      send('/split-kept?split=/items&on_error=keep', cut, { 'content-encoding': 'gzip' }),
    )
    expect(broken.status).toBe(400)
  })

  it('is answered 413 beyond its limits, which also apply to the resulting records', async () => {
    const rest = JSON.stringify({ rest: 'x'.repeat(66_000), items: [{}] })
    const many = JSON.stringify({ rest: 'x'.repeat(60_000), items: Array.from({ length: 300 }, () => 1) })
    const whole = JSON.stringify({ items: [{ text: 'x'.repeat(16_777_216) }] })
    const behind = JSON.stringify({ items: [{}], rest: 'x'.repeat(66_000) })
    for (const [raw, detail] of [
      [rest, 'at most 65536 bytes outside'],
      [behind, 'at most 65536 bytes outside'],
      [many, 'at most 16777216 bytes of records'],
      [whole, 'a body of at most 16777216 bytes'],
    ] as const) {
      const refused = await expectUnchanged(server, 'split', () => send('/split?split=/items', raw))
      expect([refused.status, refused.body.code]).toEqual([413, 'too_large'])
      expect(refused.body.detail).toContain(detail)
    }
  })

  it('is answered 400 for parameters that do not match', async () => {
    const raw = '{"items":[{}]}'
    for (const [query, pointer] of [
      ['split=', '?split'],
      ['split=/a~b', '?split'],
      ['split=a..b', '?split'],
      ['split=/items&split_rest=none', '?split_rest'],
      ['split_rest=drop', '?split_rest'],
    ] as const) {
      const { status, body } = await send(`/split?${query}`, raw)
      expect([query, status, body.errors[0].pointer]).toEqual([query, 400, pointer])
    }
    for (const type of ['application/x-ndjson', 'application/cloudevents+json']) {
      const { status, body } = await send('/split?split=/items', raw, { 'content-type': type })
      expect([type, status, body.errors[0].pointer]).toEqual([type, 400, '?split'])
    }
    const named = JSON.stringify({ agent: 'split', data: {}, items: [{}] })
    const { status, body } = await send('?split=/items', `[${named}]`)
    expect([status, body.errors[0].pointer]).toEqual([400, '?split'])
  })
})
