import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyExport } from '../../src/proof/node/verify-export.js'
import { isCaughtUp, numbersOf, openStream } from '../support/http/events.js'
import { eventually } from '../support/eventually.js'
import { startInProcess, type InProcessServer } from '../support/server/in-process-server.js'
import { call } from '../support/server/server.js'
import { captureWorkers, type WorkerCapture } from '../support/server/worker-capture.js'

let capture: WorkerCapture
let server: InProcessServer

beforeEach(async () => {
  capture = captureWorkers()
  server = await startInProcess()
})

afterEach(async () => {
  await server.stop()
  capture.release()
})

/** Writes number `n` until it is answered, with one idempotency key. Gives the statuses that it took. */
async function writeSurely(n: number): Promise<number[]> {
  const statuses: number[] = []
  for (;;) {
    const { status, headers } = await call(server, 'POST /v1/collections/told/records', {
      body: { data: { n } },
      headers: { 'idempotency-key': `write-${n}` },
    })
    statuses.push(status)
    if (status === 201) return statuses
    expect(headers.get('retry-after')).toBe('1')
  }
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_none, index) => index)
}

describe('the death of a shard thread under a running server', () => {
  it('is 503 to callers for a while, and streams go on with nothing missed and nothing twice', async () => {
    await writeSurely(0)
    const streams = await Promise.all([
      openStream(server, '/v1/agents/told/stream?since=0'),
      openStream(server, '/v1/stream?since=0'),
      openStream(server, '/v1/stream?agents=told,other&since=0'),
    ])
    for (const stream of streams) await stream.until(isCaughtUp)
    const total = 300
    const statuses = new Set<number>()
    for (let n = 1; n < total; n++) {
      // Both shards: the one that owns the agent, and one that global streams listen to all the same.
      if (n % 60 === 0) for (const shard of ['shard-0', 'shard-1']) capture.fail(capture.latest(shard))
      for (const status of await writeSurely(n)) statuses.add(status)
    }
    expect([...statuses].sort()).toEqual([201, 503])
    for (const stream of streams) {
      await stream.until((events) => numbersOf(events).length >= total)
      expect(numbersOf(stream.events)).toEqual(upTo(total))
      stream.close()
    }
    const exported = await call(server, 'GET /v1/strand/export?agent=told')
    const verified = await verifyExport(exported.text.trimEnd().split('\n'))
    expect(verified).toMatchObject({ ok: true, records: total + 1 })
  })

  it('breaks off no export of another shard', async () => {
    // Of shard 1, and several pages.
    const agent = 'pear'
    const line = `${JSON.stringify({ text: 'x'.repeat(500) })}\n`
    const headers = { 'content-type': 'application/x-ndjson' }
    await call(server, `POST /v1/collections/${agent}/records`, { body: { data: {} } })
    await call(server, `POST /v1/ingest/${agent}`, { raw: line.repeat(2_000), headers })
    const exports = { left: 10 }
    const failing = async () => {
      while (exports.left > 0) {
        capture.fail(capture.latest('shard-0'))
        await eventually(async () => (await call(server, 'GET /readyz', { key: null })).status === 503)
        await eventually(async () => (await call(server, 'GET /readyz', { key: null })).status === 200)
      }
    }
    const failures = failing()
    for (; exports.left > 0; exports.left--) {
      const { text } = await call(server, `GET /v1/strand/export?agent=${agent}`)
      const verified = await verifyExport(text.trimEnd().split('\n'))
      expect(verified).toMatchObject({ ok: true, records: 2_002 })
    }
    await failures
  })

  it('shows at readyz until the thread serves again', async () => {
    capture.fail(capture.latest('shard-0'))
    let seen = 200
    while (seen === 200) seen = (await call(server, 'GET /readyz', { key: null })).status
    expect(seen).toBe(503)
    while (seen === 503) seen = (await call(server, 'GET /readyz', { key: null })).status
    expect(seen).toBe(200)
    expect((await call(server, 'GET /healthz', { key: null })).status).toBe(200)
  })
})
