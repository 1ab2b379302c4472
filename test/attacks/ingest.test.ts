import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAuthServer } from '../support/auth-server.js'
import { expectHarmless } from '../support/probe.js'
import { signUp } from '../support/users.js'
import type { TestServer } from '../support/server.js'

/*
 * Uploads that took the server down or kept everybody waiting: a row was kept for each name that was refused, each junk
 * line cost an exception, and chunks were worked through without a pause.
 */

let server: TestServer
let nobody = ''

beforeAll(async () => {
  server = await startAuthServer({ env: { SERVICE_SHARDS: '2', SERVICE_INGEST_BAD_LINES_MAX: '0' } })
  nobody = await signUp(server, 'nobody@example.org')
})
afterAll(() => server.stop())

interface Upload {
  key?: string
  gzip?: boolean
}

/** Uploads a body, chunked and at the server's pace; gives the status and the JSON of the answer. */
async function upload(
  path: string,
  body: Iterable<string | Uint8Array>,
  { key = server.rootKey, gzip = false }: Upload = {},
  // Tests look into answers of every shape.
  // oxlint-disable-next-line no-explicit-any
): Promise<{ status: number | undefined; body: any }> {
  const sent = request(server.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/x-ndjson',
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

function* newNames(prefix: string, count: number): Generator<string> {
  for (let n = 0; n < count; n += 1_000) {
    let lines = ''
    for (let k = n; k < n + 1_000; k++) lines += `{"agent":"${prefix}-${k}","data":{}}\n`
    yield lines
  }
}

describe('an upload of lines that are all refused', () => {
  it('keeps no row for an agent that took nothing, and counts what was refused by its code', async () => {
    const lines = 150_000
    await expectHarmless(server, async () => {
      const { status, body } = await upload('/v1/ingest', newNames('none', lines), { key: nobody })
      expect(status).toBe(200)
      expect(body).toMatchObject({ accepted: 0, rejected: lines, agents: {} })
      expect(body.rejected_by_code).toEqual({ forbidden: lines })
      expect(body.errors).toHaveLength(100)
    })
  })
})

describe('an upload of line feeds', () => {
  it('that come compressed stalls nobody, and costs little in all', async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, '\n'))
    for (const path of ['/v1/ingest', '/v1/ingest/blank', '/v1/ingest/blank?on_error=reject_all']) {
      await expectHarmless(server, async () => {
        const { status, body } = await upload(path, [bomb], { gzip: true })
        expect([path, status, body.accepted ?? 0]).toEqual([path, path.includes('?') ? 413 : 200, 0])
      })
    }
  })
})
