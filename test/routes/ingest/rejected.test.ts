import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, headOf } from '../../support/http/answers.js'
import { metricsNow } from '../../support/http/metrics.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }

const send = (path: string, raw: string, headers: Record<string, string> = {}) =>
  checkedCall(server, `POST /v1/ingest${path}`, { raw, headers: { ...ndjson, ...headers } })

// Regression: such an upload was answered 200, and a pipeline that checks only the status dropped its data.
describe('an upload with refused and without accepted lines', () => {
  it('is 422 with the summary, of one agent or of many', async () => {
    const one = await send('/none', 'x\n\n{"a":1,"a":2}\n')
    expect([one.status, one.body.code]).toEqual([422, 'ingest_rejected'])
    expect(one.body).toMatchObject({
      accepted: 0,
      rejected: 2,
      rejected_by_code: { validation_failed: 2 },
      errors: [{ line: 1 }, { line: 3 }],
      first_seq: null,
      last_seq: null,
      chain_head: null,
    })
    const many = await send('', '{"agent":"none","data":7}\nx\n{"agent":"org::none","data":{}}')
    expect([many.status, many.body.code]).toEqual([422, 'ingest_rejected'])
    expect(many.body).toMatchObject({ accepted: 0, rejected: 3, agents: {} })
    expect(await headOf(server, 'none')).toBeUndefined()
  })

  it('is answered 200 if a line is accepted, or there are no lines', async () => {
    expect((await send('/some', 'x\n{}')).status).toBe(200)
    expect((await send('/some', '\n\n')).status).toBe(200)
  })

  it('can be corrected and sent again with its Idempotency-Key', async () => {
    for (const [path, bad, good] of [
      ['/right', 'x\n', '{"n":1}\n'],
      ['', '{"agent":"right","data":1}\n', '{"agent":"right","data":{}}\n'],
    ] as const) {
      const headers = { 'idempotency-key': `right${path}` }
      for (let time = 0; time < 2; time++) {
        const refused = await send(path, bad, headers)
        expect([refused.status, refused.body.code]).toEqual([422, 'ingest_rejected'])
        expect(refused.headers.get('idempotency-replayed')).toBeNull()
      }
      const mended = await send(path, good, headers)
      expect([mended.status, mended.body.accepted]).toEqual([200, 1])
      const again = await send(path, good, headers)
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true'])
    }
  })

  it('is counted by code in the metrics, but not for a replayed answer', async () => {
    const before = await countsByCode()
    const headers = { 'idempotency-key': 'counted' }
    const raw = '{}\nx\ny\n'
    await send('/counted', raw, headers)
    await send('/counted', raw, headers)
    await checkedCall(server, 'POST /v1/ingest/counted', { raw: '1' })
    await send('', '{"agent":"counted","data":{},"type":"sys/x"}')
    const after = await countsByCode()
    expect(after('validation_failed') - before('validation_failed')).toBe(3)
    expect(after('reserved_type') - before('reserved_type')).toBe(1)
  })
})

/** The counts of refused lines, by code. */
async function countsByCode(): Promise<(code: string) => number> {
  const text = await metricsNow(() => checkedCall(server, 'GET /metrics'))
  return (code) =>
    Number(
      new RegExp(`^strandfast_ingest_refused_lines_total{code="${code}"} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
    )
}
