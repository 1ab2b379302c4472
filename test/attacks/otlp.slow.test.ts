// @run on node:http
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { otlpWire, service, wireField } from '../support/http/otlp.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { limits } from '../../src/base/limits/limits.js'
import { headOf, scopedKey } from '../support/http/answers.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* Hostile OTLP requests: each is refused, or written, and costs no other client anything. */

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
  // Starts the threads of the pool, and grows their young generations.
  await send('application/json', `{"resourceLogs":[${'{},'.repeat(100_000)}{}]}`)
})
afterAll(() => server.stop())

const protobuf = 'application/x-protobuf'

/** Sends a body as gzip, to an agent. @returns the status */
async function send(type: string, body: string | Uint8Array): Promise<number> {
  const headers = { 'content-type': type, 'content-encoding': 'gzip' }
  const { status } = await call(server, 'POST /v1/otlp/attacked/v1/logs', { raw: gzipSync(body), headers })
  return status
}

/** A request whose one scope has these bytes. */
const requestOf = (scope: Uint8Array) => wireField(1, wireField(2, scope))
const hex = (text: string) => Buffer.from(text, 'hex')
const MEBIBYTE = 1 << 20
/** The most bytes of a request, without its envelope. */
const MOST = 16 * MEBIBYTE - 64
/** Bytes that repeat a piece. */
const filled = (piece: string, bytes = 4 * MEBIBYTE) =>
  Buffer.alloc(bytes - (bytes % (piece.length / 2)), hex(piece))

describe('a request in protobuf', () => {
  it('is refused if it nests deeply', async () => {
    const nested = (levels: number) => {
      let value: Uint8Array = Buffer.alloc(0)
      for (let level = 0; level < levels; level++) value = wireField(5, wireField(1, value))
      return requestOf(wireField(2, wireField(5, value)))
    }
    await expectHarmless(server, async () => {
      expect(await send(protobuf, nested(1_000))).toBe(400)
      // Groups, which have no length.
      for (const start of ['0b', '13', '9b06'])
        expect(await send(protobuf, filled(start, 4 * MEBIBYTE))).toBe(400)
      expect(await send(protobuf, requestOf(filled('0b', MEBIBYTE)))).toBe(400)
      expect(await send(protobuf, requestOf(wireField(2, filled('2b', 100_000))))).toBe(400)
    })
  })

  it('is refused if its lengths exceed it', async () => {
    await expectHarmless(server, async () => {
      for (const length of [
        '7f',
        'ffffffff07',
        'ffffffff0f',
        'ffffffffffffffff7f',
        'ffffffffffffffffff01',
        'ff'.repeat(11),
      ]) {
        expect(await send(protobuf, hex(`0a${length}`))).toBe(400)
        expect(await send(protobuf, requestOf(hex(`12${length}`)))).toBe(400)
        expect(await send(protobuf, requestOf(wireField(2, hex(`1a${length}`))))).toBe(400)
      }
    })
  })

  it('is refused if it has millions of tiny messages', async () => {
    const tiny: [string, Uint8Array, number][] = [
      ['resources', filled('0a00'), 413],
      ['scopes', wireField(1, filled('1200')), 413],
      ['log records', requestOf(filled('1200')), 413],
      ['invalid log records', requestOf(filled('1201ff', MOST)), 413],
      ['fewer invalid log records', requestOf(filled('1201ff', MEBIBYTE / 16)), 400],
      ['attributes of one log record', requestOf(wireField(2, filled('3200'))), 400],
      ['parts of one resource', wireField(1, filled('0a020a00')), 200],
      ['parts of one scope', requestOf(filled('0a020a00')), 200],
    ]
    for (const [name, body, status] of tiny) {
      await expectHarmless(server, async () =>
        expect([name, await send(protobuf, body)]).toEqual([name, status]),
      )
    }
  })

  it('is refused if it repeats a large resource', async () => {
    const resource = wireField(1, wireField(1, wireField(1, Buffer.alloc(200_000, 'x'))))
    const request = wireField(1, Buffer.concat([resource, wireField(2, filled('1200', MEBIBYTE))]))
    await expectHarmless(server, async () => expect(await send(protobuf, request)).toBe(413))
  })
})

describe('a request in JSON', () => {
  const json = 'application/json'

  it('is refused if it nests deeply', async () => {
    await expectHarmless(server, async () => {
      for (const text of [
        '['.repeat(MEBIBYTE),
        '{"a":'.repeat(MEBIBYTE),
        `{"resourceLogs":${'['.repeat(7 * MEBIBYTE)}`,
      ])
        expect(await send(json, text)).toBe(400)
    })
  })

  it('is refused if it has millions of tiny values', async () => {
    const list = (piece: string) =>
      `[${piece.repeat(Math.floor((4 * MEBIBYTE) / piece.length)).slice(0, -1)}]`
    const tiny: [string, number][] = [
      [`{"resourceLogs":${list('{},')}}`, 413],
      [`{"resourceLogs":[{"scopeLogs":[{"logRecords":${list('{},')}}]}]}`, 413],
      [`{"resourceLogs":[{"scopeLogs":[{"logRecords":${list('1,')}}]}]}`, 413],
      [`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":${list('{},')}}]}]}]}`, 400],
    ]
    for (const [text, status] of tiny) {
      await expectHarmless(
        server,
        async () => expect([text.slice(0, 80), await send(json, text)]).toEqual([text.slice(0, 80), status]),
        { memoryMebibytes: 512 },
      )
    }
  })
})

it('a request that expands to 64 MiB is refused', async () => {
  await expectHarmless(server, async () => {
    for (const type of [protobuf, 'application/json'])
      expect(await send(type, Buffer.alloc(64 * MEBIBYTE, ' '))).toBe(413)
  })
})

describe('requests of one key that arrive together', () => {
  const logsOf = (agent: string, count: number, body: string) => {
    const records = Array.from({ length: count }, () => ({ body: { stringValue: body } }))
    return gzipSync(otlpWire('logs', [{ resource: service(agent), records }]))
  }
  const headers = { 'content-type': protobuf, 'content-encoding': 'gzip' }

  // 24 requests that took a thread for a second each kept those of other keys waiting for more than ten seconds.
  it('do not delay those of another key until all are answered', async () => {
    const [{ key: attacker }, { key }] = [
      await scopedKey(server, ['ingest']),
      await scopedKey(server, ['ingest']),
    ]
    const fields = wireField(2, filled('3200', 2 * limits.otlpFieldsMax))
    const raw = gzipSync(requestOf(Buffer.concat(Array.from({ length: 25 }, () => fields))))
    let answered = 0
    const attack = Array.from({ length: 24 }, async () => {
      const { status } = await call(server, 'POST /v1/otlp/attacked/v1/logs', { raw, headers, key: attacker })
      answered++
      return status
    })
    await Promise.race(attack)
    const { status } = await call(server, 'POST /v1/logs', { raw: logsOf('honest', 1, 'x'), headers, key })
    expect(status).toBe(200)
    expect(answered).toBeLessThan(12)
    expect(new Set(await Promise.all(attack))).toEqual(new Set([200]))
  })

  // Nine of ten batches were refused with 503 after they had been decoded.
  it('are all written, although they take more memory than the key may use', async () => {
    const raw = logsOf('collector', 1_024, 'x'.repeat(6_000))
    const sent = Array.from({ length: 10 }, () => call(server, 'POST /v1/logs', { raw, headers }))
    const answers = await Promise.all(sent)
    expect(answers.map(({ status, text }) => [status, text])).toEqual(sent.map(() => [200, '']))
    expect((await headOf(server, 'collector'))?.record_count).toBe(10_240)
  })
})

it('a request of almost 16 MiB is written, although its lines take three times as much', async () => {
  const records = Array.from({ length: 4_000 }, () => ({ body: { stringValue: 'x'.repeat(4_100) } }))
  const body = otlpWire('logs', [{ resource: service('x'.repeat(8_000)), records }])
  expect(body.length).toBeGreaterThan(15.5 * MEBIBYTE)
  expect(await send(protobuf, body)).toBe(200)
})
