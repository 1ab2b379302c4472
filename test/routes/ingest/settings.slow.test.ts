import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkedCall } from '../../support/http/answers.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let strict: TestServer
let tiny: TestServer

beforeAll(async () => {
  strict = await startServer({
    env: { SERVICE_INGEST_BAD_LINES_MAX: '50', SERVICE_RECORD_MAX_BYTES: '2000' },
  })
  tiny = await startServer({ env: { SERVICE_RECORD_MAX_BYTES: '60' } })
})
afterAll(async () => {
  await strict.stop()
  await tiny.stop()
})

const send = (on: TestServer, path: string, raw: string) =>
  checkedCall(on, `POST /v1/ingest${path}`, { raw, headers: { 'content-type': 'application/x-ndjson' } })

it('ends an upload after the maximum number of refused lines, and reports the lines written and refused before', async () => {
  const few = await send(strict, '/some', `${'x\n'.repeat(50)}{}`)
  expect([few.status, few.body.accepted, few.body.rejected]).toEqual([200, 1, 50])
  const { status, body } = await send(strict, '/some', `{}\n${'x\n'.repeat(200_000)}{}`)
  expect([status, body.code, body.accepted]).toEqual([422, 'too_many_bad_lines', 1])
  expect(body.rejected).toBeGreaterThan(50)
  expect(body.rejected).toBeLessThan(200_000)
  expect(body.rejected_by_code).toEqual({ validation_failed: body.rejected })
  expect((await checkedCall(strict, 'GET /v1/agents/some/head')).body.seq).toBe(2)
})

it('writes all valid records of an OTLP request, however many are invalid', async () => {
  const logRecords = [...Array.from({ length: 200 }, () => 1), { severityNumber: 9 }]
  const body = { resourceLogs: [{ scopeLogs: [{ logRecords }] }] }
  const { status, body: answer } = await checkedCall(strict, 'POST /v1/otlp/otlp/v1/logs', { body })
  expect([status, answer.partialSuccess.rejectedLogRecords]).toEqual([200, '200'])
  expect((await checkedCall(strict, 'GET /v1/agents/otlp/head')).body.seq).toBe(1)
})

it('stores with on_error=keep the parts that fit into small records, and reports lines that do not fit', async () => {
  const raw = `{"text":"${'x'.repeat(3_000)}"}\n`
  expect((await send(strict, '/a?on_error=keep', raw)).status).toBe(200)
  expect((await send(tiny, '/a?on_error=keep', raw)).status).toBe(422)
})
