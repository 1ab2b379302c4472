import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { ingestRoutes } from '../../src/front/routes/ingest.js'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import {
  checkedCall,
  headOf,
  expectUnchanged,
  newAgent,
  scopedKey,
  untestedSuccesses,
} from '../support/http/answers.js'
import { eventually } from '../support/eventually.js'
import { RawConnection } from '../support/http/raw-http.js'
import { startServer, testRootKey, type TestCall, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '3' } })
  await newAgent(server, 'a')
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }
const gzipped = { ...ndjson, 'content-encoding': 'gzip' }
const upTo = (count: number) => Array.from({ length: count }, (_none, n) => n)
const linesOf = (count: number) => upTo(count).map((n) => JSON.stringify({ n }))
/** Lines of 512 bytes and their line breaks: 512 of them fill a chunk (src/base/limits/ingest.ts). */
const wideLinesOf = (count: number) => linesOf(count).map((line) => line.padEnd(511))
const addressed = (agents: readonly string[], count: number) =>
  upTo(count).map((n) => JSON.stringify({ agent: agents[n % agents.length], data: { n } }))

/** Sends lines to one agent. */
const lines = (agent: string, raw: string | Uint8Array, more: { query?: string; headers?: object } = {}) =>
  checkedCall(server, `POST /v1/ingest/${agent}${more.query ?? ''}`, {
    raw,
    headers: { ...ndjson, ...more.headers },
  })

/** Sends addressed lines to many agents. */
const many = (raw: string | Uint8Array, more: { query?: string; headers?: object } = {}) =>
  checkedCall(server, `POST /v1/ingest${more.query ?? ''}`, { raw, headers: { ...ndjson, ...more.headers } })

async function numbers(agent: string): Promise<number[]> {
  const seen: number[] = []
  let cursor: string | undefined
  do {
    const body = { type: 'time_range', limit: 1_000, ...(cursor ? { cursor } : {}) }
    const page = (await checkedCall(server, `POST /v1/agents/${agent}/query`, { body })).body
    seen.push(...page.records.map((record: { payload: { n: number } }) => record.payload.n))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return seen
}

/** A refused call on agent `a`, which must leave no trace. */
async function refused(route: string, options: TestCall): Promise<[number, string]> {
  const { status, body } = await expectUnchanged(server, 'a', () => checkedCall(server, route, options))
  return [status, body.code]
}

describe('one record', () => {
  it('is the whole body, and creates its agent', async () => {
    for (const contentType of ['application/json', 'application/json; charset=utf-8', 'Application/JSON']) {
      const headers = { 'content-type': contentType }
      const { status, body } = await checkedCall(server, 'POST /v1/ingest/one', {
        raw: '{"data":{"n":1}}',
        headers,
      })
      expect(status).toBe(201)
      const shown = await checkedCall(server, `GET /v1/agents/one/records/${body.id}`)
      expect(shown.body).toMatchObject({ payload: { data: { n: 1 } }, type: 'record' })
    }
    expect((await checkedCall(server, 'GET /v1/agents/one/status')).body.zone).toBe('governed')
  })

  it('can be compressed', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const raw = gzipSync('{"n":1}')
    for (const coding of ['gzip', 'x-gzip', 'GZIP']) {
      const named = { ...headers, 'content-encoding': coding }
      expect((await checkedCall(server, 'POST /v1/ingest/a', { raw, headers: named })).status).toBe(201)
    }
  })

  it('is validated like a record', async () => {
    const bodies = ['', '[', '1', 'null', '{"a":1,"a":1}', '{"a":1e400}', '{"a":9007199254740992}', '{}{}']
    const deep = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`
    const headers = { 'content-type': 'application/json' }
    for (const raw of [...bodies, deep, '{"a":"\\ud800"}', '{"__proto__":1}', '{"\\u0000":1}']) {
      expect([raw, await refused('POST /v1/ingest/a', { raw, headers })]).toEqual([
        raw,
        [400, 'validation_failed'],
      ])
    }
    const big = JSON.stringify({ text: 'x'.repeat(262_144) })
    expect(await refused('POST /v1/ingest/a', { raw: big, headers })).toEqual([413, 'too_large'])
    const huge = ' '.repeat(2_000_000)
    expect(await refused('POST /v1/ingest/a', { raw: huge, headers })).toEqual([413, 'too_large'])
    const compressed = { ...headers, 'content-encoding': 'gzip' }
    const bomb = gzipSync(Buffer.alloc(5_000_000, 32))
    expect(await refused('POST /v1/ingest/a', { raw: bomb, headers: compressed })).toEqual([413, 'too_large'])
  })

  it('honours If-Match and Idempotency-Key', async () => {
    const head = await headOf(server, 'a')
    const options = {
      body: { n: 1 },
      headers: { 'if-match': `"${head?.chain_head}"`, 'idempotency-key': 'one' },
    }
    const answers = await Promise.all(upTo(6).map(() => checkedCall(server, 'POST /v1/ingest/a', options)))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(201)
    expect((await headOf(server, 'a'))?.seq).toBe((head?.seq ?? 0) + 1)
    expect(await refused('POST /v1/ingest/a', { ...options, body: { n: 2 } })).toEqual([
      422,
      'idempotency_key_reused',
    ])
    const stale = { body: {}, headers: { 'if-match': `"${head?.chain_head}"` } }
    expect(await refused('POST /v1/ingest/a', stale)).toEqual([412, 'head_mismatch'])
  })
})

describe('lines for one agent', () => {
  it('are written in order, with a summary', async () => {
    const { status, body } = await lines('ordered', `${linesOf(5_000).join('\n')}\n`)
    expect(status).toBe(200)
    const head = await headOf(server, 'ordered')
    expect(body).toEqual({
      accepted: 5_000,
      rejected: 0,
      errors: [],
      first_seq: 1,
      last_seq: 5_000,
      chain_head: head?.chain_head,
    })
    expect(await numbers('ordered')).toEqual(upTo(5_000))
    const more = await lines('ordered', '{"n":5000}')
    expect(more.body).toMatchObject({ accepted: 1, first_seq: 5_001, last_seq: 5_001 })
  })

  it('can be of any number and as short as possible', async () => {
    const { body } = await lines('tiny', '{}\n'.repeat(17_000))
    expect(body).toMatchObject({ accepted: 17_000, rejected: 0, last_seq: 17_000 })
    const found = await checkedCall(server, `GET /v1/agents/tiny/records/${body.chain_head}`)
    expect(found.body.seq).toBe(17_000)
  })

  it('can be blank, or end in CRLF or without a line break; all are counted', async () => {
    const raw = '{"n":0}\r\n\r\n   \t\n{"n":1}\n\n\nbad\n{"n":2}\r\n[]\n{"n":3}'
    const { body } = await lines('loose', raw)
    expect(body).toMatchObject({ accepted: 4, rejected: 2, first_seq: 1, last_seq: 4 })
    expect(body.errors.map(({ line, code }: { line: number; code: string }) => [line, code])).toEqual([
      [7, 'validation_failed'],
      [9, 'validation_failed'],
    ])
    expect(await numbers('loose')).toEqual([0, 1, 2, 3])
  })

  it('can be absent: the summary is zero, and no agent is created', async () => {
    const zero = { accepted: 0, rejected: 0, errors: [], first_seq: null, last_seq: null, chain_head: null }
    for (const raw of ['', '\n', '\r\n  \n\n']) {
      for (const query of ['', '?on_error=reject_all']) {
        const { status, body } = await lines('unborn', raw, { query })
        expect([status, body]).toEqual([200, zero])
      }
    }
    const compressed = await lines('unborn', gzipSync(''), { headers: gzipped })
    expect(compressed.body).toEqual(zero)
    expect((await many('')).body).toEqual({ accepted: 0, rejected: 0, errors: [], agents: {} })
    expect(await headOf(server, 'unborn')).toBeUndefined()
    const bad = await lines('unborn', 'bad\n{"a":1,"a":2}\n')
    expect(bad.body).toMatchObject({ accepted: 0, rejected: 2, first_seq: null, chain_head: null })
    expect(await headOf(server, 'unborn')).toBeUndefined()
  })

  it('are each validated like a record', async () => {
    const bad = [
      '{"a":1,"a":1}',
      '{"a":1e400}',
      '{"a":9007199254740992}',
      '{"a":"\\udfff"}',
      '{"__proto__":{}}',
      `{"a":${'['.repeat(64)}${']'.repeat(64)}}`,
      '"text"',
      '{"a":1}{"b":2}',
      JSON.stringify({ text: 'x'.repeat(262_144) }),
    ]
    const raw = Buffer.concat([
      Buffer.from(`${bad.join('\n')}\n{"a":"`),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"n":1}'),
    ])
    const { body } = await lines('strict', raw)
    expect(body).toMatchObject({ accepted: 1, rejected: 10 })
    const codes = body.errors.map(({ code }: { code: string }) => code)
    expect(codes.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 'validation_failed'))
    expect(codes.slice(8)).toEqual(['too_large', 'validation_failed'])
  })

  it('lists at most the first 100 errors, by line, across many chunks', async () => {
    const raw = wideLinesOf(4_000).map((line, n) => (n % 20 === 7 ? 'x' : line))
    const { body } = await lines('faulty', raw.join('\n'))
    expect(body).toMatchObject({ accepted: 3_800, rejected: 200, last_seq: 3_800 })
    expect(body.errors.map(({ line }: { line: number }) => line)).toEqual(upTo(100).map((n) => n * 20 + 8))
  })

  it('can be compressed, also in parts', async () => {
    const raw = gzipSync(linesOf(5_000).join('\n'))
    const { body } = await lines('zipped', raw, { headers: gzipped })
    expect(body).toMatchObject({ accepted: 5_000, last_seq: 5_000 })
    const parts = Buffer.concat([gzipSync('{"n":1}\n{"n"'), gzipSync(':2}\n')])
    expect((await lines('parts', parts, { headers: gzipped })).body).toMatchObject({ accepted: 2 })
  })

  // Regression: uWebSockets.js reset the connection, or never answered again, because it was resumed without
  // having been paused.
  it('leave the connection usable when they are refused at their end', async () => {
    const head = `Host: a\r\nAuthorization: Bearer ${testRootKey}\r\n`
    const upload = `${head}Content-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\nContent-Length: 4`
    const requests = [
      `POST /v1/ingest HTTP/1.1\r\n${upload}\r\n\r\nabcd`,
      `GET /v1/agents/default/head HTTP/1.1\r\n${head}\r\n`,
    ]
    const connection = await RawConnection.open(server)
    for (const [index, request] of [...requests, ...requests].entries()) {
      connection.write(request)
      await connection.until(({ statuses }) => statuses.length > index)
    }
    expect(connection.answer.statuses).toEqual([400, 200, 400, 200])
    connection.destroy()
  })

  it('are answered 400 with the written lines if the gzip stream is incomplete', async () => {
    const whole = gzipSync(linesOf(100).join('\n'))
    const broken = [
      Buffer.from('{"n":1}\n'),
      whole.subarray(0, -4),
      Buffer.concat([whole.subarray(0, 20), Buffer.alloc(40)]),
    ]
    for (const raw of broken) {
      const written = async () => (await headOf(server, 'broken'))?.seq ?? 0
      const from = await written()
      const { status, body } = await lines('broken', raw, { headers: gzipped })
      expect([status, body.code]).toEqual([400, 'validation_failed'])
      expect(body.accepted).toBe((await written()) - from)
      const before = await headOf(server, 'broken')
      const all = await lines('broken', raw, { headers: gzipped, query: '?on_error=reject_all' })
      expect([all.status, all.body.code]).toEqual([400, 'validation_failed'])
      expect(await headOf(server, 'broken')).toEqual(before)
    }
  })

  // Regression: the first one ended the upload with 413. Later lines were lost, and a retry wrote earlier
  // lines twice.
  it('continue after a line that is too long, which alone is refused', async () => {
    const limit = 2 * 262_144 + 65_536
    const long = [`{"n":"${'x'.repeat(limit)}"}`, ' '.repeat(3_000_000), `"${'y'.repeat(limit)}`]
    const raw = ['{"n":0}', long[0], '{"n":1}', '{"n":2}', long[1], long[2], '{"n":3}'].join('\n')
    const headers = { 'idempotency-key': 'long-lines' }
    const first = await lines('too-long', raw, { headers })
    expect([first.status, first.body]).toMatchObject([
      200,
      { accepted: 4, rejected: 3, rejected_by_code: { too_large: 3 }, last_seq: 4 },
    ])
    const detail = `Expected a line of at most ${limit} bytes`
    expect(first.body.errors).toEqual([2, 5, 6].map((line) => ({ line, code: 'too_large', detail })))
    const again = await lines('too-long', gzipSync(raw), {
      headers: { ...headers, 'content-encoding': 'gzip' },
    })
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true'])
    expect(await numbers('too-long')).toEqual(upTo(4))
    // A line of exactly the maximum length is accepted.
    const most = await lines('too-long', `{"n":"${'\\u0061'.repeat(40_000)}"}`.padEnd(limit))
    expect([most.status, most.body.accepted]).toEqual([200, 1])
    const none = await lines('too-long', long.join('\n'))
    expect([none.status, none.body.code, none.body.rejected]).toEqual([422, 'ingest_rejected', 3])
  })

  it('can be signed as a group, sealed by the last record', async () => {
    const { body } = await lines('sealed', linesOf(1_000).join('\n'), { query: '?signing=group' })
    expect(body.accepted).toBe(1_000)
    const status = (await checkedCall(server, 'GET /v1/agents/sealed/status')).body
    const { text } = await checkedCall(server, 'GET /v1/strand/export?agent=sealed')
    const result = await verifyExport(text.trimEnd().split('\n'), { publicKey: status.public_key })
    expect(result).toMatchObject({ ok: true, records: 1_001, checkpoint: true })
    expect(result.ok && result.sealed).toBeGreaterThan(600)
    expect(await refused('POST /v1/ingest/a?signing=all', { raw: '{}', headers: ndjson })).toEqual([
      400,
      'validation_failed',
    ])
  })

  it('are all written by concurrent uploads', async () => {
    const uploads = upTo(8).map((k) => upTo(500).map((n) => `{"n":${k * 500 + n}}`))
    const answers = await Promise.all(uploads.map((upload) => lines('together', upload.join('\n'))))
    for (const { body } of answers) expect(body).toMatchObject({ accepted: 500, rejected: 0 })
    expect((await numbers('together')).sort((x, y) => x - y)).toEqual(upTo(4_000))
  })

  it('honour If-Match', async () => {
    const stale = { 'if-match': `"${'0'.repeat(64)}"` }
    const before = await headOf(server, 'a')
    for (const query of ['', '?on_error=reject_all']) {
      const answer = await lines('a', linesOf(10).join('\n'), { query, headers: stale })
      expect([answer.status, answer.body.code]).toEqual([412, 'head_mismatch'])
      expect(answer.body.chain_head).toBe(before?.chain_head)
    }
    expect(await headOf(server, 'a')).toEqual(before)
    const headers = { 'if-match': `"${before?.chain_head}"` }
    expect((await lines('a', linesOf(10).join('\n'), { headers })).body.accepted).toBe(10)
  })
})

describe('an upload with an Idempotency-Key', () => {
  it('is written once for repeated and concurrent requests', async () => {
    const raw = wideLinesOf(3_000).join('\n')
    const headers = { 'idempotency-key': 'upload' }
    const answers = await Promise.all(upTo(3).map(() => lines('once', raw, { headers })))
    answers.push(await lines('once', gzipSync(raw), { headers: { ...gzipped, ...headers } }))
    for (const { status, text } of answers) expect([status, text]).toEqual([200, answers[0]?.text])
    expect(answers.at(-1)?.headers.get('idempotency-replayed')).toBe('true')
    expect(await numbers('once')).toEqual(upTo(3_000))
  })

  it('continues after an interrupted upload', async () => {
    const raw = wideLinesOf(3_000).join('\n')
    const half = raw.slice(0, 800_000)
    const headers = { 'idempotency-key': 'resumed' }
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
    socket.write(
      `POST /v1/ingest/resumed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.rootKey}\r\n` +
        `Content-Type: application/x-ndjson\r\nIdempotency-Key: resumed\r\nContent-Length: ${raw.length}\r\n\r\n${half}`,
    )
    // The first chunk is on disk once the agent exists.
    while ((await headOf(server, 'resumed')) === undefined) continue
    socket.destroy()
    expect((await lines('resumed', raw, { headers })).body).toMatchObject({ accepted: 3_000 })
    expect(await numbers('resumed')).toEqual(upTo(3_000))
  })

  it('is 422 with another body', async () => {
    const headers = { 'idempotency-key': 'body' }
    await lines('a', '{"n":1}', { headers })
    expect(
      await refused('POST /v1/ingest/a', { raw: '{"n":2}', headers: { ...ndjson, ...headers } }),
    ).toEqual([422, 'idempotency_key_reused'])
  })

  it('does not collide with keys that look like its chunks', async () => {
    const headers = { 'idempotency-key': 'chunk' }
    await lines('a', '{"n":1}', { headers })
    for (const key of ['chunk#0', 'chunk-0', 'chunk0']) {
      const other = await lines('a', '{"n":2}', { headers: { 'idempotency-key': key } })
      expect([key, other.status]).toEqual([key, 200])
      const record = await checkedCall(server, 'POST /v1/agents/a/records', {
        body: { data: {} },
        headers: { 'idempotency-key': `chunk#0${key}` },
      })
      expect(record.status).toBe(201)
    }
  })
})

describe('lines for many agents', () => {
  const agents = upTo(7).map((k) => `many-${k}`)

  it('reach their agents in order, with a summary by agent', async () => {
    const wide = addressed(agents, 2_100).map((line) => line.padEnd(511))
    const { status, body } = await many(wide.join('\n'))
    expect(status).toBe(200)
    expect(body).toMatchObject({ accepted: 2_100, rejected: 0, errors: [] })
    expect(Object.keys(body.agents).sort()).toEqual(agents)
    for (const [k, agent] of agents.entries()) {
      const head = await headOf(server, agent)
      expect(body.agents[agent]).toEqual({
        accepted: 300,
        rejected: 0,
        first_seq: 1,
        last_seq: 300,
        chain_head: head?.chain_head,
      })
      expect(await numbers(agent)).toEqual(upTo(300).map((n) => n * 7 + k))
    }
  })

  it('are refused individually, with line number and agent', async () => {
    const raw = [
      '{"agent":"mixed-0","data":{"n":0}}',
      '',
      'no json',
      '{"data":{"n":1}}',
      '{"agent":"mixed-1","data":1}',
      '{"agent":"x y","data":{}}',
      '{"agent":"mixed-2","data":{},"type":"sys/genesis"}',
      '{"agent":"mixed-1","data":{"n":1},"type":"reading"}\r',
      '{"agent":"mixed-0","agent":"mixed-1","data":{}}',
      '{"agent":"mixed-0","data":{},"extra":1}',
      '{"agent":"org::x","data":{}}',
      '{"agent":"mixed-3","data":{"n":3}}',
    ].join('\n')
    const { body } = await many(raw)
    expect(body).toMatchObject({ accepted: 3, rejected: 8 })
    const faults = body.errors.map(({ line, code }: { line: number; code: string }) => [line, code])
    expect(faults).toEqual([
      [3, 'validation_failed'],
      [4, 'validation_failed'],
      [5, 'validation_failed'],
      [6, 'validation_failed'],
      [7, 'reserved_type'],
      [9, 'validation_failed'],
      [10, 'validation_failed'],
      [11, 'agent_not_found'],
    ])
    expect(body.errors[2].agent).toBe('mixed-1')
    expect(await numbers('mixed-1')).toEqual([1])
    expect(await headOf(server, 'mixed-2')).toBeUndefined()
  })

  it('are written all or none with on_error=reject_all, across all shards', async () => {
    const query = '?on_error=reject_all'
    const fresh = upTo(7).map((k) => `whole-${k}`)
    const good = addressed(fresh, 70)
    for (const bad of ['nonsense', '{"agent":"whole-3","data":1}', '{"agent":"","data":{}}']) {
      const { status, body } = await many(good.toSpliced(50, 0, bad).join('\n'), { query })
      expect([status, body.code]).toEqual([422, 'ingest_rejected'])
      expect(body).toMatchObject({ accepted: 0, rejected: 1 })
      expect(body.errors).toMatchObject([{ line: 51, code: 'validation_failed' }])
      for (const agent of Object.values(body.agents))
        expect(agent).toMatchObject({ accepted: 0, last_seq: null })
      for (const agent of fresh) expect(await headOf(server, agent)).toBeUndefined()
    }
    const { status, body } = await many(good.join('\n'), { query })
    expect([status, body.accepted]).toEqual([200, 70])
    for (const agent of fresh) expect(await headOf(server, agent)).toMatchObject({ seq: 10 })
  })

  // Regression: the entry of an agent named __proto__ was missing in the answer.
  it('have an entry of each agent in the answer, whatever its name', async () => {
    const own = ['__proto__', 'constructor', 'hasOwnProperty', 'toString']
    const { status, text } = await many(addressed(own, 8).join('\n'))
    expect(status).toBe(200)
    const { agents }: { agents: object } = JSON.parse(text)
    expect(Object.entries(agents).map(([name, { accepted }]) => [name, accepted])).toEqual(
      own.sort().map((name) => [name, 2]),
    )
  })

  it('are written once with an Idempotency-Key, with or without reject_all, while others write', async () => {
    for (const query of ['', '?on_error=reject_all']) {
      const own = upTo(7).map((k) => `keyed${query.length}-${k}`)
      const raw = addressed(own, 700).join('\n')
      const headers = { 'idempotency-key': `many${query}` }
      const [answers] = await Promise.all([
        Promise.all(upTo(4).map(() => many(raw, { query, headers }))),
        Promise.all(
          upTo(40).map((n) => checkedCall(server, `POST /v1/ingest/noise-${n % 9}`, { body: { n } })),
        ),
      ])
      for (const { status, body } of answers) expect([status, body.accepted]).toEqual([200, 700])
      const again = await many(raw, { query, headers })
      expect(again.headers.get('idempotency-replayed')).toBe('true')
      expect(again.body).toEqual(answers[0]?.body)
      for (const [k, agent] of own.entries()) {
        expect(await numbers(agent)).toEqual(upTo(100).map((n) => n * 7 + k))
      }
    }
  })

  it('cannot be used with If-Match', async () => {
    const headers = { 'if-match': `"${'0'.repeat(64)}"` }
    const answer = await many('{"agent":"a","data":{}}', { headers })
    expect([answer.status, answer.body.code]).toEqual([400, 'validation_failed'])
  })
})

describe('on_error=reject_all for one agent', () => {
  const query = '?on_error=reject_all'

  it('writes nothing if a line is invalid, and reports the line', async () => {
    const raw = '{"n":0}\n\nbad\n{"n":1}\n{"a":1,"a":1}'
    const answer = await expectUnchanged(server, 'a', () => lines('a', raw, { query }))
    expect([answer.status, answer.body.code]).toEqual([422, 'ingest_rejected'])
    expect(answer.body).toMatchObject({
      accepted: 0,
      rejected: 2,
      errors: [{ line: 3 }, { line: 5 }],
      first_seq: null,
      last_seq: null,
      chain_head: null,
    })
    const before = (await headOf(server, 'a'))?.seq ?? 0
    const good = await lines('a', '{"n":0}\n{"n":1}', { query })
    expect(good.body).toMatchObject({ accepted: 2, first_seq: before + 1, last_seq: before + 2 })
  })

  // Regression: the refusal was stored, so the key was used up permanently.
  it('can be corrected and sent again with its Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'put-right' }
    for (let time = 0; time < 2; time++) {
      const bad = await expectUnchanged(server, 'a', () => lines('a', '{"n":0}\nbad', { query, headers }))
      expect([bad.status, bad.body.code]).toEqual([422, 'ingest_rejected'])
      expect(bad.headers.get('idempotency-replayed')).toBeNull()
    }
    const good = await lines('a', '{"n":0}\n{"n":1}', { query, headers })
    expect([good.status, good.body.accepted]).toEqual([200, 2])
    const again = await expectUnchanged(server, 'a', () => lines('a', '{"n":0}\n{"n":1}', { query, headers }))
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([good.body, 'true'])
  })

  // Regression: invalid lines were reported before the key was checked.
  it('reports a reused Idempotency-Key even if lines are invalid', async () => {
    const headers = { 'idempotency-key': 'taken' }
    const reused = [422, 'idempotency_key_reused']
    expect((await lines('a', '{"n":0}', { query, headers })).status).toBe(200)
    const bad = await expectUnchanged(server, 'a', () => lines('a', '{"n":0}\nbad', { query, headers }))
    expect([bad.status, bad.body.code]).toEqual(reused)
    const agents = ['a', 'b', 'c', 'd']
    const addressed = (data: string) =>
      agents.map((agent) => `{"agent":"${agent}","data":${data}}`).join('\n')
    const first = await many(addressed('{}'), { query, headers })
    expect([first.status, first.body.code]).toEqual(reused)
    const own = { 'idempotency-key': 'taken-by-many' }
    expect((await many(addressed('{}'), { query, headers: own })).status).toBe(200)
    const others = await expectUnchanged(server, 'a', () => many(addressed('7'), { query, headers: own }))
    expect([others.status, others.body.code]).toEqual(reused)
  })

  it('accepts 8 MiB and 8,192 lines', async () => {
    const text = (bytes: number) => `${linesOf(10).join('\n')}\n`.padEnd(bytes, ' ')
    const most = '{}\n'.repeat(8_192)
    for (const raw of [text(8_388_608), most, most.trimEnd()]) {
      expect((await lines('a', raw, { query })).status).toBe(200)
    }
    for (const raw of [text(8_388_609), `${most}{}`, `${most}\n`]) {
      const options = { raw, headers: ndjson }
      expect(await refused(`POST /v1/ingest/a${query}`, options)).toEqual([413, 'too_large'])
    }
  })
})

describe('ingest', () => {
  it('answers 415 for unsupported media types and encodings', async () => {
    const cases: [string, Record<string, string>][] = [
      ['POST /v1/ingest/a', { 'content-type': 'text/csv' }],
      ['POST /v1/ingest/a', { ...ndjson, 'content-encoding': 'br' }],
      ['POST /v1/ingest/a', { ...ndjson, 'content-encoding': 'gzip, gzip' }],
      ['POST /v1/ingest', { 'content-type': 'text/csv' }],
    ]
    for (const [route, headers] of cases) {
      expect(await refused(route, { raw: '{"agent":"a","data":{}}', headers })).toEqual([
        415,
        'unsupported_media_type',
      ])
      // Clients distinguish the two cases by this header (RFC 9110, 12.5.3).
      const { headers: answered } = await checkedCall(server, route, { raw: '{}', headers })
      const taken = headers['content-encoding'] === undefined ? null : 'gzip, identity'
      expect(answered.get('accept-encoding')).toBe(taken)
    }
  })

  it('answers 400 for an invalid on_error and for invalid agent names', async () => {
    const options = { raw: '{}', headers: ndjson }
    for (const route of ['POST /v1/ingest/a?on_error=stop', 'POST /v1/ingest/a%20b', 'POST /v1/ingest/.a']) {
      expect([route, await refused(route, options)]).toEqual([route, [400, 'validation_failed']])
    }
    const organism = await checkedCall(server, 'POST /v1/ingest/org::x', { body: {} })
    expect([organism.status, organism.body.code]).toEqual([404, 'agent_not_found'])
  })

  it('answers a single event for the agent that it names like a record', async () => {
    const headers = {
      'ce-specversion': '1.0',
      'ce-id': '1',
      'ce-source': '/s',
      'ce-type': 't',
      'ce-agent': 'a',
    }
    expect((await checkedCall(server, 'POST /v1/ingest', { raw: '{}', headers })).status).toBe(201)
  })

  it('offers Basic and Bearer in separate headers to clients that wait for a challenge', async () => {
    const connection = await RawConnection.open(server)
    const requests = [
      ['/v1/ingest/a', 'Accept: */*'],
      ['/v1/ingest', 'Accept: */*'],
      ['/v1/agents/a/records', 'Accept: */*'],
      // A browser would show a dialog over the page, and send the key with every request from then on, also for
      // pages of other origins.
      ['/v1/ingest/a', 'Sec-Fetch-Site: same-origin'],
      ['/v1/ingest/a', 'Sec-Fetch-Mode: no-cors'],
      ['/v1/ingest/a', 'Sec-Fetch-Dest: empty'],
      ['/v1/ingest/a', 'Origin: https://evil.example.net'],
      ['/v1/ingest/a', 'Origin: null'],
    ]
    for (const [place, [path, header]] of requests.entries()) {
      connection.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\nContent-Length: 2\r\n\r\n{}`)
      await connection.until(({ statuses }) => statuses.length === place + 1)
    }
    const { text } = connection.answer
    connection.destroy()
    const basic = 'Basic realm="strandfast", charset="UTF-8"'
    expect([...text.matchAll(/WWW-Authenticate: (.+)\r/g)].map(([, challenge]) => challenge)).toEqual([
      'Bearer',
      basic,
      'Bearer',
      basic,
      'Bearer',
      ...Array(5).fill('Bearer'),
    ])
  })

  it('requires the scope', async () => {
    const { key } = await scopedKey(server, ['records:read', 'records:write'])
    for (const route of ['POST /v1/ingest/a', 'POST /v1/ingest']) {
      const options = { raw: '{"agent":"a","data":{}}\n'.repeat(1_000), headers: ndjson }
      expect(await refused(route, { ...options, key })).toEqual([403, 'forbidden'])
      expect(await refused(route, { ...options, key: null })).toEqual([401, 'unauthorized'])
    }
  })
})

// Regression: 600 uploads of 17 KB that expanded to 8 MB each took 2.8 GB, and 350 unfinished batches of 8 MB
// took 2.5 GB.
describe('bodies that never end', () => {
  const begun = async (head: string, body: Uint8Array) => {
    const connection = await RawConnection.open(server)
    connection.write(
      `POST ${head}\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\nContent-Length: 8300000\r\n\r\n`,
    )
    connection.write(body)
    return connection
  }
  const all = gzipSync('x'.repeat(8_300_000))
  const kinds: [name: string, head: string, body: Uint8Array][] = [
    [
      'are compressed and written whole',
      '/v1/ingest/a?on_error=reject_all HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip',
      all.subarray(0, -8),
    ],
    ['are JSON', '/v1/agents/a/records/batch HTTP/1.1', Buffer.alloc(8_200_000, 'x')],
  ]
  it.each(kinds)(
    'wait for the memory of one key, and are refused with 503 when too many wait: %s',
    async (_name, head, body) => {
      const open: RawConnection[] = []
      const answered = () => open.filter(({ answer }) => answer.statuses.length > 0)
      const most = 2 * limits.bodyMemoryQueueMax + 20
      for (let n = 0; n < most && answered().length === 0; n++) {
        const connection = await begun(head, body)
        open.push(connection)
        // It has arrived when a later request is answered.
        await headOf(server, 'a')
      }
      await expect.poll(() => answered().length).toBeGreaterThan(0)
      for (const { answer } of answered()) {
        expect(answer.statuses).toEqual([503])
        expect(answer.text).toContain('"code":"overloaded"')
        expect(answer.text).toMatch(/^Retry-After: 1\r$/m)
      }
      expect(open.length).toBeGreaterThan(20)
      expect(answered().length).toBeLessThan(open.length)
      for (const connection of open) connection.destroy()
      // Their memory is released.
      await eventually(async () => {
        const raw = gzipSync(
          `${linesOf(100)
            .map((line) => line.padEnd(70_000))
            .join('\n')}\n`,
        )
        const { status } = await checkedCall(server, 'POST /v1/ingest/whole?on_error=reject_all', {
          raw,
          headers: gzipped,
        })
        return status === 200
      })
    },
  )
})

it('the server answered every documented success, and had nothing to log', () => {
  expect(server.stderr()).toBe('')
  expect(untestedSuccesses(ingestRoutes)).toEqual([])
})
