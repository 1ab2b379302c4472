// @run on node:http
import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * A chunk of one byte takes six bytes of a connection, and a callback for its reader. As long as the kernel
 * has such chunks, uWebSockets.js serves no other connection.
 */

const credential = `Authorization: Bearer ${testRootKey}\r\n`
const lines = 'Content-Type: application/x-ndjson\r\n'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ nodeOptions: probedOptions })
})
afterAll(() => server.stop())

it.each([
  ['a batch', 'POST /v1/collections/a/records/batch', credential],
  ['a batch without a credential', 'POST /v1/collections/a/records/batch', ''],
  ['a record of an ingest', 'POST /v1/ingest/a', credential],
  ['lines of an ingest', 'POST /v1/ingest/a', credential + lines],
  ['an import', 'POST /v1/strand/import', credential + lines],
  ['a key', 'POST /v1/admin/api-keys', credential],
  ['a path that takes no body', 'GET /healthz', ''],
  ['an unknown path', 'POST /none', ''],
])('%s in millions of chunks stalls no other client', async (_name, line, headers) => {
  await expectHarmless(server, async () => {
    const connection = await RawConnection.open(server)
    connection.write(`${line} HTTP/1.1\r\nHost: a\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`)
    await call(server, 'GET /healthz')
    connection.write('1\r\nx\r\n'.repeat(1_500_000))
    await connection.ended()
  })
})

it('a client can send many lines as a chunk each', async () => {
  const connection = await RawConnection.open(server)
  connection.write(
    `POST /v1/ingest/lines HTTP/1.1\r\nHost: a\r\n${credential}${lines}Transfer-Encoding: chunked\r\n\r\n`,
  )
  const line = '{"sensor":"a7","at":1763820000000,"value":12.5,"unit":"C"}\n'
  connection.write(`${line.length.toString(16)}\r\n${line}\r\n`.repeat(20_000))
  connection.write('0\r\n\r\n')
  const { statuses, text } = await connection.ended()
  expect(statuses).toEqual([200])
  expect(text).toContain('"accepted":20000')
})
