import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { wireField } from '../support/http/otlp.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* Hostile OTLP requests, as they are decoded: each is refused, or written, and costs no other client anything. */

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
