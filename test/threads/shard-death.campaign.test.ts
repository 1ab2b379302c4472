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

/** Writes number `n` under an Idempotency-Key until that succeeds. @returns the statuses */
async function writeWithRetry(n: number): Promise<number[]> {
  const statuses: number[] = []
  for (;;) {
    const { status, headers } = await call(server, 'POST /v1/collections/notes/records', {
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
  it('answers callers with 503 for a while, and streams continue without gaps or duplicates', async () => {
    await writeWithRetry(0)
    const streams = await Promise.all([
      openStream(server, '/v1/agents/notes/stream?since=0'),
      openStream(server, '/v1/stream?since=0'),
      openStream(server, '/v1/stream?agents=notes,other&since=0'),
    ])
    for (const stream of streams) await stream.until(isCaughtUp)
    const total = 300
    const statuses = new Set<number>()
    for (let n = 1; n < total; n++) {
      // Both shards: the owner of the agent, and one that global streams also read.
      if (n % 60 === 0) for (const shard of ['shard-0', 'shard-1']) capture.fail(capture.latest(shard))
      for (const status of await writeWithRetry(n)) statuses.add(status)
    }
    expect([...statuses].sort()).toEqual([201, 503])
    for (const stream of streams) {
      await stream.until((events) => numbersOf(events).length >= total)
      expect(numbersOf(stream.events)).toEqual(upTo(total))
      stream.close()
    }
    const exported = await call(server, 'GET /v1/strand/export?agent=notes')
    const verified = await verifyExport(exported.text.trimEnd().split('\n'))
    expect(verified).toMatchObject({ ok: true, records: total + 1 })
  })

  it('does not interrupt an export of another shard', async () => {
    // An agent of shard 1 whose export has several pages.
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

  it('is visible at /readyz until the thread serves again', async () => {
    capture.fail(capture.latest('shard-0'))
    let seen = 200
    while (seen === 200) seen = (await call(server, 'GET /readyz', { key: null })).status
    expect(seen).toBe(503)
    while (seen === 503) seen = (await call(server, 'GET /readyz', { key: null })).status
    expect(seen).toBe(200)
    expect((await call(server, 'GET /healthz', { key: null })).status).toBe(200)
  })
})
