import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { NumberStream } from '../support/http/number-stream.js'
import { memoryBytes, openHandles } from '../support/server/process-figures.js'
import { RawConnection } from '../support/http/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server/server.js'

/*
 * Streams of which some do not read. Each stream of `loud` is sent 8 MB, far more than a socket buffers;
 * buffering them for sixty streams would take half a gigabyte.
 */

const SLOW = 60
const LOUD = 6
const QUIET = 234
const BATCHES = 20
const BATCH_RECORDS = 200
const PAD = 'x'.repeat(2_000)
const TOTAL = BATCHES * BATCH_RECORDS
const MEMORY_BYTES_MAX = 200 * 2 ** 20

let server: TestServer

// A new server for each test, because memory allocated in one test would hide that of the next.
beforeEach(async () => {
  server = await startServer({ env: { SERVICE_STREAMS_PER_PRINCIPAL: '2000' } })
  for (const agent of ['loud', 'quiet'])
    await call(server, `POST /v1/collections/${agent}/records`, { body: { data: {} } })
})
afterEach(() => server.stop())

/** Opens streams that read, and waits until they have caught up. */
async function openReaders(count: number, agent: string): Promise<NumberStream[]> {
  const streams = Array.from({ length: count }, () => new NumberStream(server, agent))
  await eventually(() => streams.every(({ caughtUp }) => caughtUp))
  return streams
}

/** Opens a stream of `loud` that stops reading once it has caught up. */
async function openStuck(): Promise<RawConnection> {
  const connection = await RawConnection.open(server)
  connection.write(
    `GET /v1/agents/loud/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\n\r\n`,
  )
  await connection.until(({ text }) => text.includes('event: caught_up'))
  connection.socket.pause()
  return connection
}

/** Writes all numbers to both agents. @returns the maximum memory of the server during the writes, bytes */
async function writeAll(): Promise<number> {
  let most = 0
  for (let first = 0; first < TOTAL; first += BATCH_RECORDS) {
    await Promise.all([write('loud', first, PAD), write('quiet', first, '')])
    most = Math.max(most, memoryBytes(server))
  }
  return most
}

async function write(agent: string, first: number, pad: string): Promise<void> {
  const records = Array.from({ length: BATCH_RECORDS }, (_none, index) => ({
    data: { n: first + index, pad },
  }))
  const { status } = await call(server, `POST /v1/collections/${agent}/records/batch`, { body: { records } })
  expect(status).toBe(201)
}

/**
 * Waits until all streams have received enough.
 * @returns the streams with other numbers, or in another order
 */
async function wrongAmong(streams: NumberStream[]): Promise<NumberStream[]> {
  await eventually(() => streams.every(({ numbers }) => numbers.length >= TOTAL))
  return streams.filter(
    ({ numbers }) => numbers.length !== TOTAL || !numbers.every((n, index) => n === index),
  )
}

describe('three hundred streams of which sixty', { timeout: 180_000 }, () => {
  it('pause do not use memory; all streams get every record once and in order, the paused ones later', async () => {
    const slow = await openReaders(SLOW, 'loud')
    const fast = [...(await openReaders(LOUD, 'loud')), ...(await openReaders(QUIET, 'quiet'))]
    const before = memoryBytes(server)
    for (const stream of slow) stream.pause()
    const most = await writeAll()
    expect(await wrongAmong(fast)).toEqual([])
    expect(slow.every(({ numbers }) => numbers.length < TOTAL)).toBe(true)
    expect(Math.max(most, memoryBytes(server)) - before).toBeLessThan(MEMORY_BYTES_MAX)
    for (const stream of slow) stream.resume()
    expect(await wrongAmong(slow)).toEqual([])
    for (const stream of [...slow, ...fast]) stream.close()
  })

  it('never read again are closed; the others get every record once and in order, on one connection each', async () => {
    const handlesBefore = openHandles(server)
    const stuck = await Promise.all(Array.from({ length: SLOW }, openStuck))
    const readers = [...(await openReaders(LOUD, 'loud')), ...(await openReaders(QUIET, 'quiet'))]
    expect(openHandles(server)).toBeGreaterThanOrEqual(handlesBefore + SLOW + LOUD + QUIET)
    const before = memoryBytes(server)
    const most = await writeAll()
    expect(await wrongAmong(readers)).toEqual([])
    // The server disconnects clients that read nothing for ten seconds.
    await eventually(() => openHandles(server) <= handlesBefore + LOUD + QUIET + 4)
    expect(Math.max(most, memoryBytes(server)) - before).toBeLessThan(MEMORY_BYTES_MAX)
    expect(readers.map(({ connections }) => connections)).toEqual(readers.map(() => 1))
    for (const one of stuck) one.destroy()
    for (const one of readers) one.close()
  })
})
