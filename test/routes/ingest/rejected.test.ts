import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, headOf } from '../../support/http/answers.js'
import { metricsNow } from '../../support/http/metrics.js'
import { startServer, type TestServer } from '../../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

const ndjson = { 'content-type': 'application/x-ndjson' }

const send = (path: string, raw: string, headers: Record<string, string> = {}) =>
  ask(server, `POST /v1/ingest${path}`, { raw, headers: { ...ndjson, ...headers } })

// A pipeline that looks at the status alone dropped what it had sent: such an upload was answered 200.
describe('an upload of which nothing is accepted and something is refused', () => {
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

  it('stays 200 when a line is accepted, or there is none', async () => {
    expect((await send('/some', 'x\n{}')).status).toBe(200)
    expect((await send('/some', '\n\n')).status).toBe(200)
  })

  it('can be put right and sent again under its Idempotency-Key', async () => {
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

  it('is counted by code in the metrics, a replayed answer not again', async () => {
    const before = await counted()
    const headers = { 'idempotency-key': 'counted' }
    const raw = '{}\nx\ny\n'
    await send('/counted', raw, headers)
    await send('/counted', raw, headers)
    await ask(server, 'POST /v1/ingest/counted', { raw: '1' })
    await send('', '{"agent":"counted","data":{},"type":"sys/x"}')
    const after = await counted()
    expect(after('validation_failed') - before('validation_failed')).toBe(3)
    expect(after('reserved_type') - before('reserved_type')).toBe(1)
  })
})

/** The counts of refused lines, by code. */
async function counted(): Promise<(code: string) => number> {
  const text = await metricsNow(() => ask(server, 'GET /metrics'))
  return (code) =>
    Number(
      new RegExp(`^strandfast_ingest_refused_lines_total{code="${code}"} (\\d+)$`, 'm').exec(text)?.[1] ?? 0,
    )
}
