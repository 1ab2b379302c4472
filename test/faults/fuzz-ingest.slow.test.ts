import { deflateSync, gzipSync } from 'node:zlib'
import { fc } from '../support/fast-check.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { runSeed } from '../support/run-seed.js'
import { changed, changes, expectNoFailure, fuzz } from '../support/faults/fuzzing.js'
import { jsonText, spoiled, spoilings } from '../support/faults/odd-json.js'
import { call, startServer, type TestAnswer, type TestServer } from '../support/server/server.js'

/* Ingest streams of random bytes: the summary covers every line, and the accepted records match the lines. */

const seed = runSeed('fuzz-ingest')

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
  for (const agent of ['fuzzed', 'other']) await newAgent(server, agent)
})
afterAll(() => server.stop())

async function headOf(agent: string): Promise<{ seq: number; chain_head: string }> {
  return (await checkedCall(server, `GET /v1/agents/${agent}/head`)).body
}

/** Valid encodings of a stream. */
const packings: Record<string, (bytes: Uint8Array) => { sent: Uint8Array; gzip: boolean }> = {
  plain: (sent) => ({ sent, gzip: false }),
  gzip: (bytes) => ({ sent: gzipSync(bytes), gzip: true }),
  members: (bytes) => {
    const half = bytes.length >> 1
    return {
      sent: Buffer.concat([gzipSync(bytes.subarray(0, half)), gzipSync(bytes.subarray(half))]),
      gzip: true,
    }
  },
}

/** Invalid encodings of a stream. */
const invalidPackings: Record<string, (bytes: Uint8Array) => { sent: Uint8Array; gzip: boolean }> = {
  cut: (bytes) => ({ sent: gzipSync(bytes).subarray(0, -9), gzip: true }),
  notGzip: (sent) => ({ sent, gzip: true }),
  deflate: (bytes) => ({ sent: deflateSync(bytes), gzip: true }),
  wrongSum: (bytes) => {
    const sent = gzipSync(bytes)
    sent[sent.length - 8] = (sent[sent.length - 8] ?? 0) ^ 1
    return { sent, gzip: true }
  },
  empty: () => ({ sent: new Uint8Array(0), gzip: true }),
}

const line = fc.oneof(
  { weight: 4, arbitrary: fc.nat().map((n) => JSON.stringify({ n })) },
  { weight: 3, arbitrary: jsonText.map((text) => `{"drawn":${text}}`.replaceAll('\n', ' ')) },
  { weight: 2, arbitrary: jsonText.map((text) => text.replaceAll('\n', ' ')) },
  { weight: 1, arbitrary: fc.constantFrom('', ' ', '\t\r', '\ufeff{}', '{}{}', '{"n":1}\r', '\0') },
)

const addressed = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.constantFrom('fuzzed', 'other'), fc.nat())
      .map(([agent, n]) => JSON.stringify({ agent, data: { n } })),
  },
  {
    weight: 3,
    arbitrary: spoilings.map((how) => spoiled({ agent: 'other', data: { n: 1 }, type: 'reading' }, how)),
  },
  { weight: 1, arbitrary: line },
)

const query = fc.record({
  on_error: fc.constantFrom('skip', 'reject_all'),
  signing: fc.constantFrom('record', 'group'),
})

interface Drawn {
  lines: string[]
  feed: string
  ended: boolean
  query: { on_error: string; signing: string }
}

const streams = (one: fc.Arbitrary<string>): fc.Arbitrary<Drawn> =>
  fc.record({
    lines: fc.array(one, { maxLength: 20 }),
    feed: fc.constantFrom('\n', '\n', '\r\n', '\n\n', '\n \n'),
    ended: fc.boolean(),
    query,
  })

function bytesOf({ lines, feed, ended }: Drawn): Buffer {
  return Buffer.from(lines.join(feed) + (ended ? feed : ''))
}

function send(
  path: string,
  { sent, gzip }: { sent: Uint8Array; gzip: boolean },
  drawn: Drawn,
): Promise<TestAnswer> {
  return checkedCall(server, `POST ${path}?${new URLSearchParams(drawn.query)}`, {
    raw: sent,
    headers: { 'content-type': 'application/x-ndjson', ...(gzip && { 'content-encoding': 'gzip' }) },
  })
}

/** Lines by their numbers, without blank ones. A byte order mark at the beginning is skipped (docs/PIPELINES.md). */
function linesOf(bytes: Uint8Array): Map<number, string> {
  const lines = Buffer.from(bytes)
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .split('\n')
  return new Map(
    [...lines.entries()].flatMap(([index, text]) => (/^[ \t\r]*$/.test(text) ? [] : [[index + 1, text]])),
  )
}

/** The value that JSON.parse returns, with negative zero as zero (RFC 8785). */
function valueOf(latin1: string): unknown {
  return JSON.parse(JSON.stringify(JSON.parse(Buffer.from(latin1, 'latin1').toString())))
}

/** The payloads of an agent's newest records, oldest first. */
async function newest(agent: string, count: number): Promise<unknown[]> {
  if (count === 0) return []
  const { body } = await checkedCall(server, `POST /v1/agents/${agent}/query`, {
    body: { type: 'latest', limit: count },
  })
  return body.records.toReversed().map(({ payload }: { payload: unknown }) => payload)
}

/** Checks the summary against the lines, and the strand against both. */
async function expectSummary(answer: TestAnswer, bytes: Uint8Array, before: { seq: number }): Promise<void> {
  const lines = linesOf(bytes)
  const { accepted, rejected, errors } = answer.body
  expect(accepted + rejected).toBe(lines.size)
  expect(errors).toHaveLength(rejected)
  for (const { line: number } of errors) expect(lines.delete(number)).toBe(true)
  expect((await headOf('fuzzed')).seq).toBe(before.seq + accepted)
  expect(await newest('fuzzed', accepted)).toEqual([...lines.values()].map(valueOf))
}

/** Streams with a byte order mark: before a line, before a blank one, and before a later one, where it is refused. */
function marked(good: string): Drawn[] {
  return [[`\ufeff${good}`], ['\ufeff', good], [good, `\ufeff${good}`]].map((lines) => ({
    lines,
    feed: '\n',
    ended: false,
    query: { on_error: 'skip', signing: 'record' },
  }))
}

describe('a stream of lines to one agent', () => {
  it('has a correct summary, with any lines', async () => {
    const draw = fc.tuple(
      streams(line),
      fc.constantFrom(...Object.keys(packings)),
      fc.option(changes, { freq: 4 }),
    )
    const valid = {
      lines: Array.from({ length: 101 }, (_none, n) => JSON.stringify({ n })),
      feed: '\n',
      ended: true,
      query: { on_error: 'skip', signing: 'record' },
    }
    const examples = Object.keys(packings).flatMap((packing) =>
      [valid, ...marked('{}')].map((drawn): [Drawn, string, null] => [drawn, packing, null]),
    )
    let accepted = 0
    const runs = 100
    await fuzz({ seed, runs, draw, examples }, async ([drawn, packing, by]) => {
      const bytes = by === null ? bytesOf(drawn) : changed(bytesOf(drawn), by)
      const packed = packings[packing]?.(bytes) ?? { sent: bytes, gzip: false }
      const before = await headOf('fuzzed')
      const answer = await send('/v1/ingest/fuzzed', packed, drawn)
      expectNoFailure(answer)
      if (answer.status === 200) {
        accepted += answer.body.accepted
        await expectSummary(answer, bytes, before)
        return
      }
      if (drawn.query.on_error === 'skip') expect(answer.body.code).toBe('ingest_rejected')
      expect(answer.body.accepted ?? 0).toBe(0)
      expect((await headOf('fuzzed')).seq).toBe(before.seq)
    })
    // The examples are valid.
    expect(accepted).toBeGreaterThan(100)
  })

  it('is refused when it does not match its encoding, and the answer has the number of written lines', async () => {
    const draw = fc.tuple(streams(line), fc.constantFrom(...Object.keys(invalidPackings)))
    await fuzz({ seed, runs: 15, draw }, async ([drawn, packing]) => {
      const packed = invalidPackings[packing]?.(bytesOf(drawn)) ?? { sent: bytesOf(drawn), gzip: true }
      const before = await headOf('fuzzed')
      const answer = await send('/v1/ingest/fuzzed', packed, drawn)
      expectNoFailure(answer)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      if (drawn.query.on_error === 'reject_all') expect(answer.body.accepted ?? 0).toBe(0)
      expect((await headOf('fuzzed')).seq).toBe(before.seq + (answer.body.accepted ?? 0))
    })
  })

  it('is refused or has a correct summary when any of its compressed bytes are changed', async () => {
    const draw = fc.tuple(streams(line), changes)
    await fuzz({ seed, runs: 15, draw }, async ([drawn, by]) => {
      const before = await headOf('fuzzed')
      const answer = await send(
        '/v1/ingest/fuzzed',
        { sent: changed(gzipSync(bytesOf(drawn)), by), gzip: true },
        drawn,
      )
      expectNoFailure(answer)
      const grown = (await headOf('fuzzed')).seq - before.seq
      expect(grown).toBe(answer.body.accepted ?? 0)
    })
  })
})

describe('a stream of lines to many agents', () => {
  it('has a correct summary, with any lines', async () => {
    const draw = fc.tuple(streams(addressed), fc.option(changes, { freq: 4 }))
    const examples = marked('{"agent":"other","data":{}}').map((drawn): [Drawn, null] => [drawn, null])
    await fuzz({ seed, runs: 20, draw, examples }, async ([drawn, by]) => {
      const bytes = by === null ? bytesOf(drawn) : changed(bytesOf(drawn), by)
      const before = { fuzzed: await headOf('fuzzed'), other: await headOf('other') }
      const answer = await send('/v1/ingest', { sent: bytes, gzip: false }, drawn)
      expectNoFailure(answer)
      const grown =
        (await headOf('fuzzed')).seq + (await headOf('other')).seq - before.fuzzed.seq - before.other.seq
      if (answer.status !== 200) {
        if (drawn.query.on_error === 'skip') expect(answer.body.code).toBe('ingest_rejected')
        expect(answer.body.accepted ?? 0).toBe(0)
        expect(grown).toBeLessThanOrEqual(answer.body.accepted ?? 0)
        return
      }
      expect(answer.body.accepted + answer.body.rejected).toBe(linesOf(bytes).size)
      // A changed line may have written to another agent, which is not counted here.
      expect(grown).toBeLessThanOrEqual(answer.body.accepted)
    })
  })
})

it('the server still works after the test', async () => {
  expect((await call(server, 'GET /readyz')).status).toBe(200)
  expect(server.stderr()).toBe('')
})
