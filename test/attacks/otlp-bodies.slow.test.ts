// @run on node:http
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { headOf, scopedKey } from '../support/http/answers.js'
import { otlpWire, service, wireField } from '../support/http/otlp.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

/* Large OTLP requests, and many at the same time, as they arrive. */

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions, env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const protobuf = 'application/x-protobuf'
const MEBIBYTE = 1 << 20

/** Sends a body as gzip, to an agent. @returns the status */
async function send(type: string, body: Uint8Array): Promise<number> {
  const headers = { 'content-type': type, 'content-encoding': 'gzip' }
  const { status } = await call(server, 'POST /v1/otlp/attacked/v1/logs', { raw: gzipSync(body), headers })
  return status
}

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
    const emptyAttributes = Buffer.alloc(2 * limits.otlpFieldsMax, Buffer.from('3200', 'hex'))
    const records = Array.from({ length: 25 }, () => wireField(2, emptyAttributes))
    const raw = gzipSync(wireField(1, wireField(2, Buffer.concat(records))))
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
