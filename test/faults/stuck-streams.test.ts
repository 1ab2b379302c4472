import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { NumberStream } from '../support/number-stream.js'
import { memoryBytes, openHandles } from '../support/process-figures.js'
import { RawConnection } from '../support/raw-http.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server.js'

const STUCK = 100
const LOUD = 10
const QUIET = 890
/** What each stream of `loud` is told is far more than its sockets hold by themselves: 12 MB. */
const BATCHES = 30
const BATCH_RECORDS = 100
const PAD = 'x'.repeat(4_000)
const TOTAL = BATCHES * BATCH_RECORDS

let server: TestServer

beforeAll(async () => {
  server = await startServer()
  for (const agent of ['loud', 'quiet'])
    await call(server, `POST /v1/collections/${agent}/records`, { body: { data: {} } })
})
afterAll(() => server.stop())

async function openStuck(): Promise<RawConnection> {
  const connection = await RawConnection.open(server)
  connection.write(
    `GET /v1/agents/loud/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testRootKey}\r\n\r\n`,
  )
  await connection.until(({ text }) => text.includes('event: caught_up'))
  connection.socket.pause()
  return connection
}

async function write(agent: string, first: number, pad: string): Promise<void> {
  const records = Array.from({ length: BATCH_RECORDS }, (_none, index) => ({
    data: { n: first + index, pad },
  }))
  const { status } = await call(server, `POST /v1/collections/${agent}/records/batch`, { body: { records } })
  expect(status).toBe(201)
}

function isWhole({ numbers }: NumberStream): boolean {
  return numbers.length === TOTAL && numbers.every((n, index) => n === index)
}

describe('a thousand streams of which a hundred never read again', () => {
  it('lose those alone: the others get everything once and in order, and memory stays', async () => {
    const handlesBefore = openHandles(server)
    const stuck = await Promise.all(Array.from({ length: STUCK }, openStuck))
    const readers = [
      ...Array.from({ length: LOUD }, () => new NumberStream(server, 'loud')),
      ...Array.from({ length: QUIET }, () => new NumberStream(server, 'quiet')),
    ]
    await eventually(() => readers.every(({ caughtUp }) => caughtUp))
    expect(openHandles(server)).toBeGreaterThanOrEqual(handlesBefore + STUCK + LOUD + QUIET)
    const before = memoryBytes(server)
    let most = before
    for (let first = 0; first < TOTAL; first += BATCH_RECORDS) {
      await Promise.all([write('loud', first, PAD), write('quiet', first, '')])
      most = Math.max(most, memoryBytes(server))
    }
    await eventually(() => readers.every(({ numbers }) => numbers.length >= TOTAL))
    expect(readers.filter((one) => !isWhole(one))).toEqual([])
    // Who takes nothing for ten seconds is hung up on.
    await eventually(() => openHandles(server) <= handlesBefore + LOUD + QUIET + 4)
    most = Math.max(most, memoryBytes(server))
    // What the stuck ones have not read, kept for each of them, would be more than a gigabyte.
    expect(most - before).toBeLessThan(300 * 2 ** 20)
    expect(readers.map(({ connections }) => connections)).toEqual(readers.map(() => 1))
    for (const one of stuck) one.destroy()
    for (const one of readers) one.close()
  })
})
