import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { NumberStream } from '../support/number-stream.js'
import { memoryBytes } from '../support/process-figures.js'
import { call, startServer, type TestServer } from '../support/server.js'

const LOUD_SLOW = 100
const LOUD_FAST = 20
const QUIET_FAST = 880
/** What each loud stream is told is far more than its sockets hold by themselves: 10 MB. */
const BATCHES = 25
const BATCH_RECORDS = 200
const LOUD_PAD = 'x'.repeat(2_000)
const TOTAL = BATCHES * BATCH_RECORDS

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  for (const agent of ['loud', 'quiet'])
    await call(server, `POST /v1/collections/${agent}/records`, { body: { data: {} } })
})

afterAll(() => server.stop())

function open(count: number, agent: string): NumberStream[] {
  return Array.from({ length: count }, () => new NumberStream(server, agent))
}

async function write(agent: string, first: number, pad: string): Promise<void> {
  const records = Array.from({ length: BATCH_RECORDS }, (_none, index) => ({
    data: { n: first + index, pad },
  }))
  const { status } = await call(server, `POST /v1/collections/${agent}/records/batch`, { body: { records } })
  expect(status).toBe(201)
}

/** Resolves when all have everything, and says how many of them have anything else, or in another order. */
async function wrongAmong(streams: NumberStream[]): Promise<number> {
  await eventually(() => streams.every(({ numbers }) => numbers.length >= TOTAL))
  return streams.filter(({ numbers }) => numbers.length !== TOTAL || numbers.some((n, index) => n !== index))
    .length
}

describe('a thousand streams of which a hundred do not read', () => {
  it('fill no memory; those that read get everything once and in order, and so do the others later', async () => {
    const slow = open(LOUD_SLOW, 'loud')
    const fast = [...open(LOUD_FAST, 'loud'), ...open(QUIET_FAST, 'quiet')]
    await eventually(() => [...slow, ...fast].every(({ caughtUp }) => caughtUp))
    const before = memoryBytes(server)
    let most = before
    for (const stream of slow) stream.pause()
    for (let first = 0; first < TOTAL; first += BATCH_RECORDS) {
      await Promise.all([write('loud', first, LOUD_PAD), write('quiet', first, '')])
      most = Math.max(most, memoryBytes(server))
    }
    expect(await wrongAmong(fast)).toBe(0)
    most = Math.max(most, memoryBytes(server))
    expect(slow.every(({ numbers }) => numbers.length < TOTAL)).toBe(true)
    // What the slow ones have not read, kept for each of them, would be a gigabyte.
    expect(most - before).toBeLessThan(300 * 2 ** 20)
    for (const stream of slow) stream.resume()
    expect(await wrongAmong(slow)).toBe(0)
    for (const stream of [...slow, ...fast]) stream.close()
  })
})
