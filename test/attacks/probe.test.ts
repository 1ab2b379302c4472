import { afterAll, beforeAll, expect, it } from 'vitest'
import { expectNoStall, probed } from '../support/server/probe.js'
import { call, startServer, type TestServer } from '../support/server/server.js'

let server: TestServer

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SHARDS: '2' } })
})
afterAll(() => server.stop())

it('sees no stall while nothing but small writes are sent', async () => {
  const seen = await probed(server, async () => {
    for (let n = 0; n < 200; n++)
      await call(server, 'POST /v1/collections/calm/records', { body: { data: { n } } })
  })
  expect(seen.failed).toEqual([])
  expect(seen.asked).toBeGreaterThan(10)
  expectNoStall(seen)
})

it('sees a shard that is busy with one big batch', async () => {
  const text = JSON.stringify(Array.from({ length: 2_000 }, (_, n) => n / 7))
  const records = Array.from({ length: 200 }, () => ({ data: { list: JSON.parse(text) as unknown } }))
  const small = await probed(server, () =>
    call(server, 'POST /v1/collections/one/records', { body: records[0] }),
  )
  const big = await probed(server, () =>
    call(server, 'POST /v1/collections/probe-0/records/batch', { body: { records } }),
  )
  expect(big.shardMs).toBeGreaterThan(small.shardMs)
})
