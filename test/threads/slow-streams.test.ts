import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.js'
import { memoryBytes } from '../support/process-figures.js'
import { call, startServer, testRootKey, type TestServer } from '../support/server.js'

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

/** A stream that keeps the numbers of its records, in the order that they came. It connects again as clients do. */
class NumberStream {
  readonly numbers: number[] = []
  caughtUp = false
  #agent: string
  #socket: Socket
  #lastId = ''
  #rest = ''
  #closed = false

  constructor(agent: string) {
    this.#agent = agent
    this.#socket = this.#connect()
  }

  /** Reads nothing from now on. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #connect(): Socket {
    const { hostname, port } = new URL(server.url)
    const socket = connect({ host: hostname, port: Number(port) })
    const goOn = this.#lastId === '' ? '' : `Last-Event-ID: ${this.#lastId}\r\n`
    socket.write(
      `GET /v1/agents/${this.#agent}/stream HTTP/1.1\r\nHost: a\r\n` +
        `Authorization: Bearer ${testRootKey}\r\n${goOn}\r\n`,
    )
    this.#rest = ''
    socket.on('data', (bytes: Buffer) => this.#read(bytes.toString('latin1')))
    socket.on('error', () => undefined)
    // A reader that stands still for ten seconds is hung up on, not told nothing.
    socket.on('close', () => {
      if (!this.#closed) this.#socket = this.#connect()
    })
    return socket
  }

  /** Chunks of the transfer coding may lie within an event, so only what tells of one is looked for. */
  #read(text: string): void {
    const all = this.#rest + text
    const end = all.lastIndexOf('\n\n')
    if (end === -1) {
      this.#rest = all
      return
    }
    const whole = all.slice(0, end)
    this.#rest = all.slice(end)
    if (whole.includes('event: caught_up')) this.caughtUp = true
    for (const [, number] of whole.matchAll(/"n":(\d+)[,}]/g)) this.numbers.push(Number(number))
    for (const [, id] of whole.matchAll(/id: (\d+)\n/g)) this.#lastId = id ?? ''
  }
}

function open(count: number, agent: string): NumberStream[] {
  return Array.from({ length: count }, () => new NumberStream(agent))
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
