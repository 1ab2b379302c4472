import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf, newAgent, scopedKey } from '../../support/http/answers.js'
import { startServer, type TestAnswer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }

function send(
  path: string,
  raw: string,
  ...[headers = ndjson, key = server.rootKey]: Sent
): Promise<TestAnswer> {
  return checkedCall(server, `POST /v1/ingest${path}`, { raw, headers, key })
}

type Sent = [headers?: Record<string, string>, key?: string]

const seqOf = async (agent: string) => (await headOf(server, agent))?.seq

describe('dedupe=body', () => {
  const query = '?dedupe=body'

  it('writes the same body to the same agent once, in one upload or several', async () => {
    const first = await send(`/once${query}`, '{"n":1,"m":2}\n{"m":2, "n":1}\n{"n":2}')
    expect(first.body).toMatchObject({ accepted: 3, duplicates: 1, rejected: 0, last_seq: 2 })
    const again = await send(`/once${query}`, '{"n":1,"m":2}\n{"n":2}')
    expect([again.status, again.body]).toMatchObject([200, { accepted: 2, duplicates: 2, last_seq: null }])
    const many = await send(query, '{"agent":"once","data":{"n":2}}\n{"agent":"twice","data":{"n":2}}')
    expect(many.body).toMatchObject({ accepted: 2, duplicates: 1, agents: { twice: { last_seq: 1 } } })
    const typed = await send(query, '{"agent":"once","data":{"n":2},"type":"reading"}')
    expect(typed.body.duplicates).toBeUndefined()
    expect(await seqOf('once')).toBe(3)
    expect((await send('/once', '{"n":2}')).body.last_seq).toBe(4)
  })

  it('answers a repeated single record with the summary', async () => {
    expect((await send(`/single${query}`, '{"n":1}', {})).status).toBe(201)
    const { status, body } = await send(`/single${query}`, '{"n":1}', {})
    expect([status, body]).toMatchObject([200, { accepted: 1, duplicates: 1, first_seq: null }])
    expect(await seqOf('single')).toBe(1)
  })

  it('applies to concurrent uploads, all or none, with a key, and to stored refused lines', async () => {
    const raw = Array.from({ length: 1_000 }, (_none, n) => `{"n":${n % 700}}\n`).join('')
    for (const more of ['', '&on_error=reject_all', '&on_error=keep']) {
      const path = `/concurrent-${more.length}${query}${more}`
      const answers = await Promise.all([1, 2, 3].map(() => send(path, raw)))
      for (const { status, body } of answers) expect([status, body.accepted]).toEqual([200, 1_000])
      expect(await seqOf(`concurrent-${more.length}`)).toBe(700)
      const headers = { ...ndjson, 'idempotency-key': 'k' }
      expect((await send(path, raw, headers)).body).toMatchObject({ accepted: 1_000, duplicates: 1_000 })
    }
    for (let time = 0; time < 2; time++) {
      const kept = await send(`/kept-once${query}&on_error=keep`, 'x\n{}\nx\n')
      expect([kept.status, kept.body]).toMatchObject([200, { accepted: 1, rejected: 2, kept: 2 }])
    }
    expect(await seqOf('kept-once')).toBe(2)
  })

  it('is scoped to the caller: another caller writes the record', async () => {
    const { key } = await scopedKey(server, ['ingest'])
    expect((await send(`/shared${query}`, '{}')).body.duplicates).toBeUndefined()
    expect((await send(`/shared${query}`, '{}', ndjson, key)).body).toMatchObject({
      accepted: 1,
      last_seq: 2,
    })
  })

  it('is answered 400 for other values, and 413 for too many lines', async () => {
    expect((await send('/a?dedupe=body&on_error=reject_all', '{}\n'.repeat(1_025))).status).toBe(413)
    expect((await send('/a?dedupe=hash', '{}')).body).toMatchObject({
      status: 400,
      errors: [{ pointer: '?dedupe' }],
    })
  })
})

describe('a CloudEvent', () => {
  const event = { specversion: '1.0', id: '1', source: '/s', type: 't' }
  const structured = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
  const batched = { 'content-type': 'application/cloudevents-batch+json' }
  const bodies = async (agent: string) => {
    const page = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body: { type: 'time_range' } })
    return page.body.records.map((record: { payload: unknown }) => record.payload)
  }

  it('becomes a record in its JSON format in every mode, and is written once', async () => {
    const whole = {
      ...event,
      time: '2026-01-01T00:00:00Z',
      traceparent: 'é b',
      datacontenttype: 'application/json',
      data: [1, { n: 2 }],
    }
    const binary = {
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/s',
      'ce-type': 't',
      'ce-time': '2026-01-01T00:00:00Z',
      'ce-traceparent': '%C3%A9%20b',
      'content-type': 'application/json',
    }
    expect((await send('/ce', '[1,{"n":2}]', binary)).status).toBe(201)
    expect((await send('/ce', JSON.stringify(whole, null, 2), structured)).body).toMatchObject({
      accepted: 1,
      duplicates: 1,
    })
    const two = await send('/ce', JSON.stringify([whole, { ...event, id: '2' }]), batched)
    expect([two.status, two.body]).toMatchObject([200, { accepted: 2, duplicates: 1 }])
    expect(await bodies('ce')).toEqual([whole, { ...event, id: '2' }])
    const other = await send('/ce', JSON.stringify({ ...whole, data: 7 }), structured)
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
  })

  // Regression: a sender that changed its mode had all of its events refused, because binary mode includes
  // the media type and only has texts.
  it.each([
    ['JSON', ['application/json; charset=utf-8', '{"n":1}'], { data: { n: 1 } }],
    [
      'a JSON text',
      ['application/json', '"a"'],
      { data: 'a', datacontenttype: 'application/json; charset=UTF-8' },
    ],
    ['other JSON', ['application/geo+json', '{}'], { data: {}, datacontenttype: 'application/geo+json' }],
    ['text', ['text/plain; charset=utf-8', 'a\nb'], { data: 'a\nb', datacontenttype: 'text/plain' }],
    ['XML', ['application/xml', '<a/>'], { data: '<a/>', datacontenttype: 'application/xml' }],
    ['bytes', ['image/x', 'ab'], { data_base64: 'YWI=', datacontenttype: 'image/x' }],
    ['nothing', ['', ''], { datacontenttype: null, subject: null }],
  ])('is the same event in either mode, with data of %s', async (name, [type = '', raw = ''], own) => {
    const binary = Object.entries({ ...event, id: name, sequence: '7', sampled: 'true' }).map(
      ([attribute, value]) => [`ce-${attribute}`, value],
    )
    const headers = { ...Object.fromEntries(binary), ...(type !== '' && { 'content-type': type }) }
    const whole = { ...event, id: name, sequence: 7, sampled: true, ...own }
    const agent = `modes-${name.replaceAll(' ', '-').toLowerCase()}`
    const first = await send(`/${agent}`, raw, headers)
    const then = await send(`/${agent}`, JSON.stringify(whole), structured)
    const other = await send(`/${agent}`, JSON.stringify({ ...whole, sequence: 8 }), structured)
    const answers = [first.status, then.body, other.body]
    expect(answers).toMatchObject([201, { accepted: 1, duplicates: 1 }, { code: 'idempotency_key_reused' }])
  })

  it('names its agent with the extension attribute agent if the path does not', async () => {
    const own = { ...event, agent: 'ce-many' }
    const one = await send('', JSON.stringify(own, null, 2), structured)
    expect([one.status, one.body.accepted]).toEqual([200, 1])
    const some = await send('', JSON.stringify([own, { ...own, id: '2' }, { ...event, id: '3' }]), batched)
    expect(some.body).toMatchObject({ accepted: 2, duplicates: 1, rejected: 1 })
    const headers = { 'ce-specversion': '1.0', 'ce-id': '4', 'ce-source': '/s', 'ce-type': 't' }
    expect((await send('', '', { ...headers, 'ce-agent': 'ce-many' })).status).toBe(201)
    expect((await send('', '', headers)).status).toBe(400)
    expect(await seqOf('ce-many')).toBe(3)
    const { key } = await scopedKey(server, ['ingest'], ['other'])
    expect((await send('', '', { ...headers, 'ce-agent': 'ce-many' }, key)).status).toBe(403)
  })

  it('stores any data in binary mode: JSON, text, or bytes', async () => {
    const headers = (id: string, type: string) => ({
      'ce-specversion': '1.0',
      'ce-id': id,
      'ce-source': '/s',
      'ce-type': 't',
      'content-type': type,
    })
    expect((await send('/data', 'a\nb', headers('1', 'text/plain'))).status).toBe(201)
    expect((await send('/data', 'a\nb', headers('2', 'application/octet-stream'))).status).toBe(201)
    expect(await bodies('data')).toMatchObject([{ data: 'a\nb' }, { data_base64: 'YQpi' }])
    for (const [type, raw] of [
      ['application/json', '{} {}'],
      ['application/json', '1},"x":{"a":1'],
    ] as const) {
      expect((await send('/data', raw, headers('3', type))).status).toBe(400)
    }
  })

  it('has an RFC 3339 time or none, and its data in one form', async () => {
    const times = [
      '2026-01-31T12:00:00Z',
      '2026-01-31t12:00:60.123456789012+23:59',
      '2024-02-29T00:00:00-00:00',
      null,
    ]
    for (const [n, time] of times.entries())
      expect((await send('/timed', JSON.stringify({ ...event, id: `t${n}`, time }), structured)).status).toBe(
        201,
      )
    const absent = { ...event, id: 'n', data: 1, data_base64: null }
    expect((await send('/timed', JSON.stringify(absent), structured)).status).toBe(201)
    const head = await seqOf('timed')
    const wrong: [pointer: string, more: object][] = [
      ['/time', { time: '2026-01-31' }],
      ['/time', { time: '2026-01-31T12:00:00' }],
      ['/time', { time: '2026-02-30T12:00:00Z' }],
      ['/time', { time: '2026-01-31T24:00:00Z' }],
      ['/time', { time: 'yesterday' }],
      ['/time', { time: 1_790_000_000_000 }],
      ['/data_base64', { data: 1, data_base64: 'YQ==' }],
    ]
    for (const [pointer, more] of wrong) {
      const refused = await send('/timed', JSON.stringify({ ...event, id: 'w', ...more }), structured)
      expect([pointer, refused.status], JSON.stringify(more)).toEqual([pointer, 400])
    }
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': 'b',
      'ce-source': '/s',
      'ce-type': 't',
      'ce-time': 'now',
    }
    expect((await send('/timed', '{}', headers)).body.errors).toMatchObject([{ pointer: '/time' }])
    expect(await seqOf('timed')).toBe(head)
  })

  // Regression: senders that do not encode were refused for each URL with a percent sign.
  it('keeps percent signs in headers that encode nothing', async () => {
    const headers = { 'ce-specversion': '1.0', 'ce-id': '100%', 'ce-source': '/a%2Fb?q=%zz%', 'ce-type': 't' }
    expect((await send('/signs', '{}', headers)).status).toBe(201)
    expect(await bodies('signs')).toMatchObject([{ id: '100%', source: '/a/b?q=%zz%' }])
  })

  it('is refused without a required attribute', async () => {
    for (const missing of ['specversion', 'id', 'source', 'type']) {
      const partial = Object.fromEntries(Object.entries(event).filter(([name]) => name !== missing))
      expect((await send('/bad', JSON.stringify(partial), structured)).status).toBe(400)
      expect((await send('/bad', JSON.stringify([partial]), batched)).status).toBe(422)
      const headers = Object.fromEntries(
        Object.entries(partial).map(([name, value]) => [`ce-${name}`, value]),
      )
      expect((await send('/bad', '{}', headers)).status).toBe(400)
    }
    for (const [raw, headers] of [
      [JSON.stringify([event]), structured],
      [JSON.stringify(event), batched],
      ['{}', { 'ce-specversion': '1.0', 'ce-id': '%ff' }],
      ['{}', { 'ce-id': '1', 'ce-data': 'x' }],
      [`${JSON.stringify(event)},${JSON.stringify(event)}`, structured],
    ] as const) {
      for (const path of ['/bad', ''])
        expect([raw, (await send(path, raw, headers)).status]).toEqual([raw, 400])
    }
    expect(await headOf(server, 'bad')).toBeUndefined()
  })
})
