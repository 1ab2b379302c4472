import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { LogAnswer, SegmentRow } from '../../../../src/protocol/cluster-log-messages.js'
import { LogClient } from '../../../../workers/store/replica/log-client.js'

const node = { node: 'a', incarnation: 1 }
const isAlive = (alive: boolean): LogAnswer => ({ kind: 'isAlive', alive })
/** An answer that arrives after the timeout of its request. */
const late: LogAnswer = { kind: 'rows', rows: [] }

const rowAt = (segment: number, part = 0): SegmentRow => ({
  segment,
  part,
  hash: Buffer.alloc(32),
  header: '',
  blocks: Buffer.alloc(0),
  state: null,
})

describe('the channel of a shard to the thread of the log', () => {
  let channel: MessageChannel
  let ends: Int32Array<SharedArrayBuffer>
  let client: LogClient

  beforeEach(() => {
    channel = new MessageChannel()
    ends = new Int32Array(new SharedArrayBuffer(4))
    const shared = { shard: 0, port: channel.port1, answers: new SharedArrayBuffer(4), ends: ends.buffer }
    client = new LogClient(shared, () => {}, 5)
  })

  afterEach(() => client.close())

  it('returns the answer to the current request, not to one that timed out', () => {
    expect(() => client.find(0)).toThrow('does not respond')
    expect(() => client.find(1)).toThrow('does not respond')
    for (const answer of [late, late, isAlive(true), isAlive(false)]) channel.port2.postMessage(answer)
    expect(client.isAlive(node)).toBe(true)
    expect(client.isAlive(node)).toBe(false)
  })

  it('ends at the first read that does not fill a page, even while segments are appended', () => {
    const full = Array.from({ length: limits.clusterReadRows }, (_none, index) => rowAt(index + 1))
    // The last segment of a full page is read again, because it may have more rows.
    const last = [rowAt(full.length), rowAt(full.length, 1), rowAt(full.length + 1)]
    for (const rows of [full, last, [rowAt(full.length + 2)]])
      channel.port2.postMessage({ kind: 'rows', rows })
    const found = [...client.segments(0)].map((rows) => rows.map(({ segment, part }) => `${segment}.${part}`))
    expect(found).toEqual([
      ...full.slice(0, -1).map(({ segment }) => [`${segment}.0`]),
      [`${full.length}.0`, `${full.length}.1`],
      [`${full.length + 1}.0`],
    ])
  })

  it('reads more rows if a single segment fills a page', () => {
    const parts = Array.from({ length: limits.clusterReadRows + 1 }, (_none, part) => rowAt(1, part))
    for (const rows of [parts.slice(1), parts]) channel.port2.postMessage({ kind: 'rows', rows })
    expect([...client.segments(0)].map((rows) => rows.length)).toEqual([parts.length])
  })

  it('continues after a page that is full by bytes but not by rows', () => {
    const half = Buffer.alloc(limits.clusterReadBytes / 2)
    const large = [
      { ...rowAt(1), blocks: half },
      { ...rowAt(2), state: half },
    ]
    for (const rows of [large, [rowAt(3)]]) channel.port2.postMessage({ kind: 'rows', rows })
    expect([...client.segments(0)].map(([row]) => row?.segment)).toEqual([1, 2, 3])
  })

  it('times out again when only answers to earlier requests arrive', () => {
    expect(() => client.isAlive(node)).toThrow('does not respond')
    channel.port2.postMessage(isAlive(true))
    expect(() => client.isAlive(node)).toThrow('does not respond')
    channel.port2.postMessage(isAlive(true))
    channel.port2.postMessage(isAlive(false))
    expect(client.isAlive(node)).toBe(false)
  })

  it('does not wait during a shutdown, but returns an answer that has arrived', () => {
    Atomics.store(ends, 0, 1)
    expect(() => client.isAlive(node)).toThrow('The process is shutting down')
    channel.port2.postMessage(isAlive(true))
    expect(client.isAlive(node)).toBe(true)
  })

  it('passes messages to its listener, except answers to requests that timed out', async () => {
    expect(() => client.isAlive(node)).toThrow('does not respond')
    const received: LogAnswer[] = []
    const appended: LogAnswer = { kind: 'appended', result: 'durable', reason: '' }
    const both = new Promise<void>((resolve) => {
      client.listen((answer) => {
        received.push(answer)
        resolve()
      })
    })
    channel.port2.postMessage(isAlive(true))
    channel.port2.postMessage(appended)
    await both
    expect(received).toEqual([appended])
  })
})
