import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { checkedCall, newAgent } from '../support/http/answers.js'
import { startAuthServer } from '../support/server/auth-server.js'
import { openStream } from '../support/http/events.js'
import { expectHarmless, probedOptions } from '../support/server/probe.js'
import { call, type TestServer } from '../support/server/server.js'
import { signUp, subjectOf } from '../support/auth/users.js'

let server: TestServer
let ann = ''

beforeAll(async () => {
  server = await startAuthServer({
    nodeOptions: probedOptions,
    env: { SERVICE_SHARDS: '2', SERVICE_STREAMS_PER_PRINCIPAL: '1500' },
  })
  ann = await signUp(server, 'ann@example.org')
})
afterEach(() => listeners.close())
afterAll(() => server.stop())

/** Many streams that only count the occurrences of a mark. */
class Listeners {
  readonly #sockets: Socket[] = []
  #seen = 0
  #wanted: { mark: string; count: number; resolve: () => void } | undefined

  /** Opens streams, and waits until each has caught up. */
  async open(count: number, path: string, key: string): Promise<void> {
    const { hostname, port } = new URL(server.url)
    for (let from = 0; from < count; from += 250) {
      const wave = Math.min(250, count - from)
      const caughtUp = this.#await('event: caught_up', wave)
      for (let n = 0; n < wave; n++) {
        const socket = connect({ host: hostname, port: Number(port) })
        let tail = ''
        socket.on('data', (bytes: Buffer) => {
          const { mark } = this.#wanted ?? { mark: '' }
          tail += bytes.toString('latin1')
          const found = mark === '' ? 0 : tail.split(mark).length - 1
          tail = found > 0 ? '' : tail.slice(-mark.length)
          this.#count(found)
        })
        socket.on('error', () => {})
        socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`)
        this.#sockets.push(socket)
      }
      await caughtUp
    }
  }

  /** Runs an action, and waits until all streams have received the mark. */
  async receive(mark: string, act: () => Promise<unknown>): Promise<void> {
    const received = this.#await(mark, this.#sockets.length)
    await act()
    await received
  }

  close(): void {
    for (const socket of this.#sockets.splice(0)) socket.destroy()
  }

  #await(mark: string, count: number): Promise<void> {
    this.#seen = 0
    return new Promise((resolve) => (this.#wanted = { mark, count, resolve }))
  }

  #count(found: number): void {
    this.#seen += found
    if (this.#wanted === undefined || this.#seen < this.#wanted.count) return
    this.#wanted.resolve()
  }
}

const listeners = new Listeners()

/** A record of about 54 KB, in the shape that takes longest to parse, with `mark` at its end. */
function bigRecord(mark: string): object {
  const brackets: unknown = JSON.parse('['.repeat(30) + ']'.repeat(30))
  return { owner: subjectOf(ann), body: Array.from({ length: 880 }, () => brackets), wanted: 1, zz: mark }
}

async function write(agent: string, ...data: object[]): Promise<void> {
  const body = { records: data.map((one) => ({ data: one })) }
  const { status, text } = await call(server, `POST /v1/agents/${agent}/records/batch`, { body })
  expect(status, text).toBe(201)
}

/** Creates an agent whose records users can read by one policy, among many policies that do not match. */
async function ownedAgent(name: string): Promise<string> {
  await newAgent(server, name)
  const no = (n: number) => ({ field: `body.${n}`, op: 'eq', value: n })
  const policies = [
    ...Array.from({ length: 30 }, (_, n) => ({ actions: ['read'], conditions: [no(n)] })),
    { actions: ['read'], conditions: [{ field: 'owner', op: 'eq', value: '$jwt.sub' }] },
  ]
  const { status, text } = await checkedCall(server, `PUT /v1/agents/${name}/policies`, {
    body: { policies },
  })
  expect(status, text).toBe(200)
  return name
}

describe('a large record', () => {
  it('is sent to 300 streams with a filter without a stall', async () => {
    await newAgent(server, 'filtered')
    const path = '/v1/agents/filtered/stream?filter=wanted'
    await listeners.open(290, path, server.rootKey)
    await listeners.open(10, '/v1/stream?agents=filtered&filter=wanted', server.rootKey)
    await expectHarmless(server, async () => {
      for (const mark of ['ONE!', 'TWO!', 'THREE!']) {
        await listeners.receive(mark, () => write('filtered', bigRecord(mark)))
      }
      // More than fits into one write, so that all streams fall behind together.
      const many = ['ONE!', 'TWO!', 'THREE!', 'FOUR!'].map(bigRecord)
      await listeners.receive('FOUR!', () => write('filtered', ...many))
    })
  })

  it('is sent to 1,500 streams of one user without a stall', async () => {
    const agent = await ownedAgent('owned')
    await listeners.open(1_500, `/v1/agents/${agent}/stream`, ann)
    await expectHarmless(server, async () => {
      for (const mark of ['ONE!', 'TWO!']) await listeners.receive(mark, () => write(agent, bigRecord(mark)))
    })
  })
})

it('a principal cannot open more streams than its quota, and other principals are not affected', async () => {
  const agent = await ownedAgent('shared')
  const path = `/v1/agents/${agent}/stream`
  await listeners.open(1_500, path, ann)
  for (const one of [path, `/v1/stream?agents=${agent}`]) {
    const refused = await call(server, `GET ${one}`, { key: ann })
    expect([refused.status, refused.body.code]).toEqual([429, 'too_many_streams'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  }
  const other = await openStream(server, path)
  other.close()
  const bob = await signUp(server, 'bob@example.org')
  const others = await openStream(server, path, { key: bob })
  others.close()
})
