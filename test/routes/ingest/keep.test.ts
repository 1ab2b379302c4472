import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf, newAgent, scopedKey } from '../../support/http/answers.js'
import { startAuthServer } from '../../support/server/auth-server.js'
import { type TestServer } from '../../support/server/server.js'
import { signUp } from '../../support/auth/users.js'

let server: TestServer

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '3', SERVICE_INGEST_BAD_LINES_MAX: '1000' } })
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }

interface Sent {
  headers?: Record<string, string>
  key?: string
}

const send = (path: string, raw: string | Uint8Array, { headers = {}, key = server.rootKey }: Sent = {}) =>
  checkedCall(server, `POST /v1/ingest${path}`, { raw, headers: { ...ndjson, ...headers }, key })

interface Kept {
  line: number
  part?: number
  parts?: number
  bytes?: number
  sha256?: string
  text?: string
  base64?: string
}

/** The bodies of the refused lines that an agent has stored. */
async function keptBy(agent: string): Promise<Kept[]> {
  const stored: Kept[] = []
  let cursor: string | undefined
  do {
    const body = { type: 'time_range', types: ['ingest/rejected'], limit: 1_000, ...(cursor && { cursor }) }
    const page = await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })
    stored.push(...page.body.records.map((record: { payload: Kept }) => record.payload))
    cursor = page.body.next_cursor ?? undefined
  } while (cursor !== undefined)
  return stored
}

/** Joins the parts of a line. */
const joined = (parts: readonly Kept[]) =>
  Buffer.concat(
    parts.map(({ text = '', base64 = '' }) =>
      Buffer.concat([Buffer.from(text), Buffer.from(base64, 'base64')]),
    ),
  )

const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

describe('on_error=keep for one agent', () => {
  const query = '?on_error=keep'

  it('stores each refused line at its place in the strand, and answers 200', async () => {
    const { status, body } = await send(`/kept${query}`, '{"n":1}\nbad\r\n\n{"n":9007199254740993}\n{"n":2}')
    expect([status, body]).toMatchObject([
      200,
      {
        accepted: 2,
        rejected: 2,
        kept: 2,
        rejected_by_code: { validation_failed: 2 },
        first_seq: 1,
        last_seq: 4,
      },
    ])
    expect(body.chain_head).toBe((await headOf(server, 'kept'))?.chain_head)
    const code = 'validation_failed'
    expect(await keptBy('kept')).toEqual([
      { line: 2, code, detail: 'Expected one JSON value', text: 'bad\r' },
      { line: 4, code, detail: expect.stringContaining('2^53-1'), text: '{"n":9007199254740993}' },
    ])
  })

  it('answers 200 if every line is refused, and creates the agent', async () => {
    const { status, body } = await send(`/only-bad${query}`, 'x\ny\n')
    expect([status, body]).toMatchObject([
      200,
      { accepted: 0, rejected: 2, kept: 2, first_seq: 1, last_seq: 2 },
    ])
  })

  // Regression: of lines that do not fit into a record, a fifth was stored, and the answer was 200.
  it('stores bytes that are not UTF-8, and lines that do not fit into a record in parts', async () => {
    const odd = Buffer.from([0x7b, 0xff, 0xfe, 0x22])
    const texts = [`{"text":"${'é'.repeat(200_000)}"}`, `{"quotes":"${String.raw`\"`.repeat(200_000)}"}`]
    const bytes = [Buffer.from('\u0001'.repeat(200_000)), Buffer.alloc(300_000, 0xff)]
    const lines = [odd, ...texts, ...bytes].flatMap((line) => [Buffer.from(line), Buffer.from('\n')])
    const { status, body } = await send(`/odd${query}`, Buffer.concat(lines))
    expect([status, body]).toMatchObject([200, { accepted: 0, rejected: 5, kept: 5 }])
    expect(body.last_seq).toBe((await headOf(server, 'odd'))?.seq)
    const [first, ...parts] = await keptBy('odd')
    expect(first).toEqual({
      line: 1,
      code: 'validation_failed',
      detail: 'Expected UTF-8',
      base64: odd.toString('base64'),
    })
    for (const [index, whole] of [...texts, ...bytes].entries()) {
      const own = parts.filter(({ line }) => line === index + 2)
      expect(own.length).toBeGreaterThan(1)
      expect(own.map(({ part }) => part)).toEqual(own.map((_none, place) => place + 1))
      for (const { parts: count, bytes: length, sha256: digest } of own) {
        expect([count, length, digest]).toEqual([own.length, Buffer.byteLength(whole), sha256(whole)])
      }
      expect(joined(own).equals(Buffer.from(whole))).toBe(true)
      expect('text' in (own[0] ?? {})).toBe(typeof whole === 'string')
    }
  })

  it('stores a record that is too long, and refuses only lines beyond the limit of an upload', async () => {
    const json = { 'content-type': 'application/json' }
    const raw = JSON.stringify({ text: 'x'.repeat(3_000_000) }, null, 1)
    const { status, body } = await send(`/long${query}`, raw, { headers: json })
    expect([status, body]).toMatchObject([200, { accepted: 0, kept: 1, rejected_by_code: { too_large: 1 } }])
    expect(joined(await keptBy('long')).toString()).toBe(raw)
    const more = await send(`/long${query}`, raw.padEnd(8_388_609), { headers: json })
    expect([more.status, more.body.code]).toEqual([413, 'too_large'])
    expect((await headOf(server, 'long'))?.seq).toBe(body.last_seq)
  })

  it('stores a line that is too long to be parsed, and continues after it', async () => {
    const long = [`{"text":"${'x'.repeat(700_000)}"}`, `${' '.repeat(8_388_000)}"`]
    const raw = ['{}', long[0], '{}', long[1], 'bad', ''].join('\n')
    const headers = { 'idempotency-key': 'long-lines' }
    for (let time = 0; time < 2; time++) {
      const { status, body } = await send(`/behind${query}`, raw, { headers })
      expect([status, body]).toMatchObject([200, { accepted: 2, rejected: 3, kept: 3 }])
      expect(body.last_seq).toBe((await headOf(server, 'behind'))?.seq)
    }
    const kept = await keptBy('behind')
    for (const [line, text] of [
      [2, long[0]],
      [4, long[1]],
      [5, 'bad'],
    ] as const) {
      expect(joined(kept.filter((one) => one.line === line)).toString() === text).toBe(true)
    }
    const over = await send(`/behind${query}`, `{}\n${' '.repeat(8_388_609)}\n{}`)
    expect([over.status, over.body]).toMatchObject([413, { code: 'too_large', accepted: 2, rejected: 1 }])
    expect(over.body.detail).toContain('(line 2)')
  })

  it('stores the attributes of a CloudEvent whose data is refused', async () => {
    const headers = {
      'content-type': 'application/json',
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/s',
    }
    const { status, body } = await send(`/event${query}`, '{"n":}', {
      headers: { ...headers, 'ce-type': 't' },
    })
    expect([status, body.kept]).toEqual([200, 1])
    const event = {
      specversion: '1.0',
      id: '1',
      source: '/s',
      type: 't',
      datacontenttype: 'application/json',
    }
    expect(await keptBy('event')).toMatchObject([{ line: 1, text: '{"n":}', event }])
  })

  it('stores a refused single record as its only line', async () => {
    const raw = '{"a":1,\n"a":2}'
    const json = { 'content-type': 'application/json' }
    const { status, body } = await send(`/single${query}`, raw, { headers: json })
    expect([status, body]).toMatchObject([200, { accepted: 0, rejected: 1, kept: 1, last_seq: 1 }])
    expect(await keptBy('single')).toMatchObject([{ line: 1, text: raw }])
    expect((await send(`/single${query}`, '{}', { headers: json })).status).toBe(201)
  })

  it('is written once with an Idempotency-Key, with any number of refused lines', async () => {
    const headers = { 'idempotency-key': 'keep' }
    const raw = 'x\n{}\n'.repeat(600)
    const first = await send(`/keyed${query}`, raw, { headers })
    const again = await send(`/keyed${query}`, raw, { headers })
    expect([first.status, first.body.kept, again.headers.get('idempotency-replayed')]).toEqual([
      200,
      600,
      'true',
    ])
    expect(again.body).toEqual(first.body)
    expect((await headOf(server, 'keyed'))?.seq).toBe(1_200)
  })

  it('ends after the same number of refused lines as without keep', async () => {
    const { status, body } = await send(`/many${query}`, 'x\n'.repeat(50_000))
    expect([status, body.code]).toEqual([422, 'too_many_bad_lines'])
    expect((await headOf(server, 'many'))?.seq).toBe(body.kept)
    expect(body.kept).toBeLessThan(50_000)
  })

  it('stores nothing if the error does not concern a line, such as a head mismatch or an agent that takes no writes', async () => {
    const headers = { 'if-match': `"${'0'.repeat(64)}"` }
    expect((await send(`/kept${query}`, 'x', { headers })).status).toBe(412)
    const { status, body } = await send(`/org::none${query}`, 'x')
    expect([status, body.code, body.kept]).toEqual([422, 'ingest_rejected', undefined])
  })
})

describe('on_error=keep for many agents', () => {
  const query = '?on_error=keep&rejected_agent=leftovers'

  it('stores a line with the agent that it names, other lines with the agent of the query', async () => {
    const raw = [
      '{"agent":"m1","data":{}}',
      '{"agent":"m1","data":7}',
      '{"agent":"m2","data":{"n":9007199254740993}}',
      'bad',
      '{"agent":"no name","data":{}}',
      '{"agent":"leftovers","data":{}}',
    ]
    const headers = { 'idempotency-key': 'many' }
    for (let time = 0; time < 2; time++) {
      const { status, body } = await send(query, raw.join('\n'), { headers })
      expect([status, body]).toMatchObject([200, { accepted: 2, rejected: 4, kept: 4 }])
      expect(body.agents.m2).toMatchObject({ accepted: 0, rejected: 1, last_seq: 1 })
    }
    expect(await keptBy('m1')).toMatchObject([{ line: 2, text: raw[1] }])
    expect(await keptBy('m2')).toMatchObject([{ line: 3, text: raw[2] }])
    const left = await keptBy('leftovers')
    expect(left.map(({ line, text }) => [line, text])).toEqual([
      [4, raw[3]],
      [5, raw[4]],
    ])
  })

  it('stores a line that is too long to be parsed with the agent that it names', async () => {
    const long = `{"agent":"m3","data":{"text":"${'x'.repeat(700_000)}"}}`
    const unnamed = 'x'.repeat(700_000)
    const { status, body } = await send(
      '?on_error=keep&rejected_agent=m4',
      `${long}\n${unnamed}\n{"agent":"m3","data":{}}`,
    )
    expect([status, body]).toMatchObject([
      200,
      { accepted: 1, rejected: 2, kept: 2, agents: { m3: { rejected: 1 } } },
    ])
    expect(joined(await keptBy('m3')).toString() === long).toBe(true)
    expect(joined(await keptBy('m4')).toString() === unnamed).toBe(true)
  })

  it('requires an agent that the caller reaches', async () => {
    const bad = await send('?on_error=keep', 'x')
    expect([bad.status, bad.body.code, bad.body.errors[0].pointer]).toEqual([
      400,
      'validation_failed',
      '?rejected_agent',
    ])
    const { key } = await scopedKey(server, ['ingest'], ['mine*'])
    expect((await send(query, 'x', { key })).status).toBe(403)
    const raw = '{"agent":"other","data":1}\n{"agent":"mine-1","data":1}'
    const mine = await send('?on_error=keep&rejected_agent=mine-left', raw, { key })
    expect([mine.status, mine.body.kept]).toEqual([200, 2])
    expect(await headOf(server, 'other')).toBeUndefined()
    expect(await keptBy('mine-left')).toMatchObject([{ line: 1, code: 'forbidden' }])
    expect(await keptBy('mine-1')).toMatchObject([{ line: 2 }])
  })
})

describe('on_error=keep for a user', () => {
  it('stores only records that a policy lets the user write', async () => {
    const token = await signUp(server, 'keeper@example.org')
    for (const agent of ['bound', 'open', 'shut']) await newAgent(server, agent)
    const allow = (agent: string, conditions: object[]) => {
      const body = { policies: [{ actions: ['write'], conditions }] }
      return checkedCall(server, `PUT /v1/agents/${agent}/policies`, { body })
    }
    await allow('bound', [{ field: 'owner', op: 'eq', value: '$jwt.sub' }])
    await allow('open', [])
    for (const path of ['/bound?on_error=keep', '/shut?on_error=keep']) {
      const { status, body } = await send(path, 'x\n{"owner":"me"}', { key: token })
      expect([status, body.kept]).toEqual([path.startsWith('/shut') ? 403 : 422, undefined])
    }
    expect((await send('/open?on_error=keep', 'x', { key: token })).body).toMatchObject({ kept: 1 })
    const raw = ['open', 'bound', 'shut', 'nowhere']
      .map((agent) => `{"agent":"${agent}","data":1}`)
      .join('\n')
    const many = await send('?on_error=keep&rejected_agent=bound', `${raw}\nx`, { key: token })
    expect([many.status, many.body]).toMatchObject([422, { accepted: 0, rejected: 5, kept: 1 }])
    for (const agent of ['bound', 'shut']) expect((await headOf(server, agent))?.seq).toBeLessThan(2)
    expect(await keptBy('bound')).toEqual([])
  })
})
