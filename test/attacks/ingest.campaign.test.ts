import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/server/auth-server.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { signUp } from '../support/auth/users.js'
import { call, type TestServer } from '../support/server/server.js'

/*
 * Regression: uploads stopped the server or stalled all clients, because a row was stored for each refused
 * name, each invalid line cost an exception, and chunks were processed without a pause.
 */

/** Enough lines to grow the young generations of all threads. */
const WARMING_LINES = 150_000

let server: TestServer
let unprivileged = ''

beforeAll(async () => {
  server = await startAuthServer({
    nodeOptions: probedOptions,
    env: { SERVICE_SHARDS: '2', SERVICE_INGEST_BAD_LINES_MAX: '0' },
  })
  unprivileged = await signUp(server, 'unprivileged@example.org')
  // V8 gives each thread a young generation of 48 MiB once it has work; this memory is not caused by the
  // attacks.
  const { status } = await upload('/v1/ingest', newNames('first', WARMING_LINES), { key: unprivileged })
  expect(status).toBe(422)
})
afterAll(() => server.stop())

interface Upload {
  key?: string
  gzip?: boolean
  type?: string
}

/** Uploads a body, chunked and at the server's pace. @returns the status and the JSON of the answer */
async function upload(
  path: string,
  body: Iterable<string | Uint8Array>,
  { key = server.rootKey, gzip = false, type = 'application/x-ndjson' }: Upload = {},
  // Tests read answers of every shape.
  // oxlint-disable-next-line no-explicit-any
): Promise<{ status: number | undefined; body: any }> {
  const sent = request(server.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': type,
      ...(gzip && { 'content-encoding': 'gzip' }),
    },
  })
  const answered = once(sent, 'response')
  // The server may answer before the body is whole.
  pipeline(Readable.from(body), sent).catch(() => {})
  const [response]: IncomingMessage[] = await answered
  let text = ''
  for await (const part of response ?? []) text += String(part)
  sent.destroy()
  return { status: response?.statusCode, body: JSON.parse(text) }
}

function* repeated(text: string, count: number): Generator<string> {
  const piece = text.repeat(1_000)
  for (let n = 0; n < count; n += 1_000) yield piece
}

function* newNames(prefix: string, count: number): Generator<string> {
  for (let n = 0; n < count; n += 1_000) {
    let lines = ''
    for (let k = n; k < n + 1_000; k++) lines += `{"agent":"${prefix}-${k}","data":{}}\n`
    yield lines
  }
}

describe('an upload of lines that are all refused', () => {
  it('stores no row for an agent without accepted lines, and counts the refused lines by code', async () => {
    const lines = 150_000
    await expectHarmless(server, async () => {
      const { status, body } = await upload('/v1/ingest', newNames('none', lines), { key: unprivileged })
      expect(status).toBe(422)
      expect(body).toMatchObject({ accepted: 0, rejected: lines, agents: {} })
      expect(body.rejected_by_code).toEqual({ forbidden: lines })
      expect(body.errors).toHaveLength(100)
    })
  })

  it('stalls no other client if its lines are invalid, for one agent or for many', async () => {
    for (const path of ['/v1/ingest', '/v1/ingest/junk']) {
      await expectHarmless(server, async () => {
        const { status, body } = await upload(path, repeated('x\n', 200_000))
        expect([status, body.rejected]).toEqual([422, 200_000])
        expect(body.rejected_by_code).toEqual({ validation_failed: 200_000 })
      })
    }
  })

  it('stalls no other client if each line is kept, for one agent or for many', async () => {
    for (const path of [
      '/v1/ingest?on_error=keep&rejected_agent=kept-junk',
      '/v1/ingest/kept?on_error=keep',
    ]) {
      for (const [line, count] of [
        ['x\n', 40_000],
        [`${'\u0001'.repeat(100_000)}\n`, 40],
        [`{"agent":"kept","data":"${'x'.repeat(100)}"`.padEnd(200, 'y') + '\n', 8_000],
        // A line that is kept in several records.
        [`${'\u0001'.repeat(8_388_608)}\n`, 3],
        [`${'"'.repeat(8_388_608)}\n`, 3],
      ] as const) {
        await expectHarmless(server, async () => {
          // A chunk contains many lines, because tens of thousands of tiny chunks end their connection
          // (tiny-chunks.slow.test.ts).
          const pieces =
            line.length > 1_000 ? Array.from({ length: count }, () => line) : repeated(line, count)
          const { status, body } = await upload(path, pieces)
          expect([status, body.kept]).toEqual([200, count])
        })
      }
    }
  })

  it('stalls no other client if it is compressed', async () => {
    for (const path of ['/v1/ingest', '/v1/ingest/junk']) {
      await expectHarmless(server, async () => {
        const bomb = gzipSync('x\n'.repeat(200_000))
        const { body } = await upload(path, [bomb], { gzip: true })
        expect(body.rejected).toBe(200_000)
      })
    }
  })
})

describe('an upload of line feeds', () => {
  it('stalls no other client if it is compressed, and costs little', async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, '\n'))
    for (const path of ['/v1/ingest', '/v1/ingest/blank', '/v1/ingest/blank?on_error=reject_all']) {
      await expectHarmless(server, async () => {
        const { status, body } = await upload(path, [bomb], { gzip: true })
        expect([path, status, body.accepted ?? 0]).toEqual([path, path.includes('?') ? 413 : 200, 0])
      })
    }
  })
})

/** Lines of at most `bytes` in total. */
function* linesOf(bytes: number, line: (n: number) => string): Generator<string> {
  let sent = 0
  for (let n = 0; sent < bytes; n++) {
    const text = `${line(n)}\n`
    sent += text.length
    if (sent <= bytes) yield text
  }
}

const EIGHT_MEBIBYTES = 8_388_608
const ones = (count: number) => `[${Array.from({ length: count }, () => 1).join(',')}]`

describe('an upload that is written all or none', () => {
  it('stalls no other client with 8 MiB of lines, for one agent or for many', async () => {
    const kib = JSON.stringify({ list: JSON.parse(ones(500)) as unknown })
    const bodies: [string, (n: number) => string][] = [
      ['/v1/ingest/whole', () => kib],
      ['/v1/ingest/empty', () => '{}'],
      ['/v1/ingest', (n) => `{"agent":"whole-${n % 16}","data":${kib}}`],
    ]
    for (const [path, line] of bodies) {
      const lines = [...linesOf(EIGHT_MEBIBYTES, line)].slice(0, 8_192)
      await expectHarmless(server, async () => {
        const { status, body } = await upload(`${path}?on_error=reject_all`, lines)
        expect([status, body.accepted]).toEqual([200, lines.length])
      })
    }
  })

  it('stalls no other client if it is refused', async () => {
    const lines = ['{}\n'.repeat(8_000), 'x\n']
    await expectHarmless(server, async () => {
      const { status } = await upload('/v1/ingest/whole?on_error=reject_all', lines)
      expect(status).toBe(422)
    })
  })

  it('stalls no other client with a batch of 8 MiB, whatever its records are', async () => {
    const batch = (record: string, count: number) => `{"records":[${Array(count).fill(record).join(',')}]}`
    const bodies: [string, number][] = [
      [batch(`{"data":{"list":${ones(4_000)}}}`, 1_000), 201],
      [batch(`{"data":{"text":"${'x'.repeat(8_000)}"}}`, 1_000), 201],
      [batch(`{"data":{"list":[${Array(600).fill('{"b":1,"a":2}').join(',')}]}}`, 800), 201],
      [batch('1', 4_000_000), 413],
      [batch(ones(4_000_000), 1), 413],
    ]
    for (const [text, status] of bodies) {
      await expectHarmless(server, async () => {
        const sent = { raw: text, headers: { 'content-type': 'application/json' } }
        expect((await call(server, 'POST /v1/collections/batched/records/batch', sent)).status).toBe(status)
      })
    }
  })
})

describe('lines that are written', () => {
  it('stall no other client if each of them is for a new agent', async () => {
    await expectHarmless(server, async () => {
      const { body } = await upload('/v1/ingest', newNames('fresh', 8_000))
      expect(body.accepted).toBe(8_000)
    })
  })
})

describe('a JSON array', () => {
  it('stalls no other client, whatever its length and content', async () => {
    const json = { type: 'application/json' }
    const bodies: [path: string, piece: string, count: number, status: number][] = [
      ['/v1/ingest/array', '{},'.repeat(1_000), 40, 400],
      ['/v1/ingest', '7,'.repeat(1_000), 100, 400],
      ['/v1/ingest/array', '[['.repeat(50_000), 20, 400],
      ['/v1/ingest/array?on_error=keep', '[['.repeat(50_000), 70, 200],
      ['/v1/ingest/array', '{},'.repeat(50_000), 100, 400],
      ['/v1/ingest/array', '{},'.repeat(50_000), 120, 413],
      ['/v1/ingest/array', ' '.repeat(100_000), 5, 200],
      ['/v1/ingest/array?on_error=reject_all', `{"list":${ones(500)}},`.repeat(8), 900, 400],
    ]
    for (const [path, piece, count, status] of bodies) {
      await expectHarmless(server, async () => {
        const parts = ['[', ...Array.from({ length: count }, () => piece), ...(status === 200 ? [']'] : [])]
        expect([path, (await upload(path, parts, json)).status]).toEqual([path, status])
      })
    }
  })
})

describe('lines that are written once', () => {
  it('stall no other client, whether they are new, repeated, atomic or events', async () => {
    const lines = (count: number) => Array.from({ length: count }, (_none, n) => `{"n":${n}}\n`)
    const events = Array.from(
      { length: 8_000 },
      (_none, n) => `{"specversion":"1.0","id":"${n}","source":"s","type":"t"},`,
    )
    const batch = { type: 'application/cloudevents-batch+json' }
    for (let time = 0; time < 2; time++) {
      await expectHarmless(server, async () => {
        const { body } = await upload('/v1/ingest/once?dedupe=body', lines(20_000))
        expect([body.accepted, body.duplicates ?? 0]).toEqual([20_000, time * 20_000])
      })
      await expectHarmless(server, async () => {
        const { body } = await upload('/v1/ingest/once-all?dedupe=body&on_error=reject_all', lines(1_024))
        expect([body.accepted, body.duplicates ?? 0]).toEqual([1_024, time * 1_024])
      })
      await expectHarmless(server, async () => {
        const parts = ['[', ...events, '{"specversion":"1.0","id":"x","source":"s","type":"t"}]']
        const { body } = await upload('/v1/ingest/events', parts, batch)
        expect([body.accepted, body.duplicates ?? 0]).toEqual([8_001, time * 8_001])
      })
    }
  })
})
