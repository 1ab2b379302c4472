import { describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { BodyBuffers } from '../../../../src/front/http/body-buffers.js'
import { Exchange } from '../../../../src/front/http/exchange.js'
import { answerBytes } from '../../../../src/front/limits/bounds.js'
import { Quota } from '../../../../src/base/quota.js'
import type { HttpResponse } from '../../../../src/front/engine/http-listener.js'

/** A connection whose socket accepts as many bytes as the test says, when it says so. */
class Reader {
  status = ''
  /** Statuses of finished exchanges; 0 for a client that has disconnected. */
  readonly done: number[] = []
  readonly exchange: Exchange
  /** Bytes of the body that the socket accepted. */
  taken = 0
  #capacity = 0
  #abort = () => {}
  #writable: (offset: number) => boolean = () => true

  constructor(unsent: Quota, principalId: string) {
    const response = {
      onAborted: (abort: () => void) => (this.#abort = abort),
      onWritable: (writable: (offset: number) => boolean) => (this.#writable = writable),
      cork: (write: () => void) => write(),
      writeStatus: (status: string) => (this.status = status),
      writeHeader: () => {},
      end: () => {},
      getWriteOffset: () => this.taken,
      tryEnd: (part: Uint8Array, size: number) => {
        const taking = Math.min(this.#capacity, part.length)
        this.#capacity -= taking
        this.taken += taking
        return [taking === part.length, this.taken === size]
      },
    } as unknown as HttpResponse
    const about = {
      requestId: 'x',
      allowedOrigin: '',
      headOnly: false,
      isLast: false,
      isKept: true,
      unsent,
      buffers: new BodyBuffers(),
    }
    this.exchange = new Exchange(response, about, { done: (status) => this.done.push(status) })
    this.exchange.holderOf = () => principalId
  }

  read(bytes: number): void {
    this.#capacity = bytes
    this.#writable(this.taken)
  }

  disconnect(): void {
    this.#abort()
  }
}

const MEBIBYTE = 1 << 20
const quota = limits.unsentBytesPerPrincipalMax

describe('a large answer', () => {
  const body = Buffer.alloc(4 * MEBIBYTE, 'x')
  /** Requests it, and waits until its head was sent: large answers are sent a few at a time. */
  const requestOne = async (unsent: Quota, principalId: string): Promise<Reader> => {
    const reader = new Reader(unsent, principalId)
    reader.exchange.answer({ status: 200, body: [body] })
    while (reader.status === '') await new Promise((resolve) => setImmediate(resolve))
    return reader
  }

  async function requestMany(
    count: number,
    unsent: Quota,
    principalOf: (n: number) => string,
  ): Promise<Reader[]> {
    const readers: Reader[] = []
    for (let n = 0; n < count; n++) readers.push(await requestOne(unsent, principalOf(n)))
    return readers
  }

  it('is 503 while its principal has too many unread bytes, but not for others', async () => {
    const unsent = new Quota(answerBytes)
    const readers = await requestMany(quota / body.length, unsent, () => 'ann')
    expect(new Set(readers.map(({ status }) => status))).toEqual(new Set(['200 OK']))
    const refused = await requestOne(unsent, 'ann')
    expect([refused.status, refused.done]).toEqual(['503 Service Unavailable', [503]])
    expect((await requestOne(unsent, 'bob')).status).toBe('200 OK')
    // Small answers fit into the socket's buffer.
    const small = new Reader(unsent, 'ann')
    small.exchange.answer({ status: 200, body: '{}' })
    expect(small.done).toEqual([200])
    const [first, second] = readers
    first?.read(body.length / 2)
    expect(first?.exchange.open).toBe(false)
    expect((await requestOne(unsent, 'ann')).status).toBe('503 Service Unavailable')
    first?.read(body.length / 2)
    expect(first?.done).toEqual([200])
    const next = await requestOne(unsent, 'ann')
    expect(next.status).toBe('200 OK')
    expect((await requestOne(unsent, 'ann')).status).toBe('503 Service Unavailable')
    second?.disconnect()
    expect(second?.done).toEqual([0])
    expect((await requestOne(unsent, 'ann')).status).toBe('200 OK')
  })

  it('is 503 for every principal while all together have too many unread bytes', async () => {
    const unsent = new Quota(answerBytes)
    const count = limits.unsentBytesMax / body.length
    const readers = await requestMany(count, unsent, (n) => `user-${Math.floor(n / 8)}`)
    expect(readers.filter(({ status }) => status !== '200 OK')).toEqual([])
    expect((await requestOne(unsent, 'other')).status).toBe('503 Service Unavailable')
    for (const reader of readers) reader.disconnect()
    expect((await requestOne(unsent, 'other')).status).toBe('200 OK')
  })

  it('is counted once, even if the exchange is answered again', async () => {
    const unsent = new Quota(answerBytes)
    const reader = await requestOne(unsent, 'ann')
    reader.exchange.answer({ status: 200, body: [body] })
    reader.exchange.refuse({ code: 'internal_error', detail: 'Late' })
    reader.read(body.length)
    expect([reader.taken, reader.done]).toEqual([body.length, [200]])
    reader.disconnect()
    expect(reader.done).toEqual([200])
    expect(unsent.reserve('ann', quota)).toBe(true)
  })
})
