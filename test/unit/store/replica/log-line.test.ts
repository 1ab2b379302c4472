import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import type { LogAnswer, SegmentRow } from '../../../../src/protocol/cluster-log-messages.js'
import { LogLine } from '../../../../workers/store/replica/log-line.js'

const node = { node: 'a', incarnation: 1 }
const isAlive = (alive: boolean): LogAnswer => ({ kind: 'isAlive', alive })
/** An answer that took too long, and was not asked for again. */
const late: LogAnswer = { kind: 'rows', rows: [] }

const rowAt = (segment: number, part = 0): SegmentRow => ({
  segment,
  part,
  hash: Buffer.alloc(32),
  header: '',
  blocks: Buffer.alloc(0),
  state: null,
})

describe('the line of a shard to the thread of the log', () => {
  let channel: MessageChannel
  let ends: Int32Array<SharedArrayBuffer>
  let line: LogLine

  beforeEach(() => {
    channel = new MessageChannel()
    ends = new Int32Array(new SharedArrayBuffer(4))
    const shared = { shard: 0, port: channel.port1, answers: new SharedArrayBuffer(4), ends: ends.buffer }
    line = new LogLine(shared, () => {}, 5)
  })

  afterEach(() => line.close())

  it('takes the answer to what it asked, not one that it had given up', () => {
    expect(() => line.rows({ segment: 0, part: 0 })).toThrow('does not answer')
    expect(() => line.rows({ segment: 1, part: 0 })).toThrow('does not answer')
    for (const answer of [late, late, isAlive(true), isAlive(false)]) channel.port2.postMessage(answer)
    expect(line.isAlive(node)).toBe(true)
    expect(line.isAlive(node)).toBe(false)
  })

  it('is at the end of a log once a read has found less than it may, however much is written meanwhile', () => {
    const full = Array.from({ length: limits.clusterReadRows }, (_none, nth) => rowAt(nth + 1))
    const parts = [rowAt(full.length, 1), rowAt(full.length + 1)]
    for (const rows of [full, parts, [rowAt(full.length + 2)]])
      channel.port2.postMessage({ kind: 'rows', rows })
    const found = [...line.segments(0)].map((rows) => rows.map(({ segment, part }) => `${segment}.${part}`))
    expect(found).toEqual([
      ...full.slice(0, -1).map(({ segment }) => [`${segment}.0`]),
      [`${full.length}.0`, `${full.length}.1`],
      [`${full.length + 1}.0`],
    ])
  })

  it('reads on behind rows that are fewer than it may have and as many bytes', () => {
    const half = Buffer.alloc(limits.clusterReadBytes / 2)
    const large = [
      { ...rowAt(1), blocks: half },
      { ...rowAt(2), state: half },
    ]
    for (const rows of [large, [rowAt(3)]]) channel.port2.postMessage({ kind: 'rows', rows })
    expect([...line.segments(0)].map(([row]) => row?.segment)).toEqual([1, 2, 3])
  })

  it('gives up again where only those have come that it had given up', () => {
    expect(() => line.isAlive(node)).toThrow('does not answer')
    channel.port2.postMessage(isAlive(true))
    expect(() => line.isAlive(node)).toThrow('does not answer')
    channel.port2.postMessage(isAlive(true))
    channel.port2.postMessage(isAlive(false))
    expect(line.isAlive(node)).toBe(false)
  })

  it('does not wait where the process ends, but takes what is there', () => {
    Atomics.store(ends, 0, 1)
    expect(() => line.isAlive(node)).toThrow('The process ends')
    channel.port2.postMessage(isAlive(true))
    expect(line.isAlive(node)).toBe(true)
  })

  it('hands on what comes by itself, but for what it had given up', async () => {
    expect(() => line.isAlive(node)).toThrow('does not answer')
    const taken: LogAnswer[] = []
    const appended: LogAnswer = { kind: 'appended', became: 'durable', reason: '' }
    const both = new Promise<void>((resolve) => {
      line.listen((answer) => {
        taken.push(answer)
        resolve()
      })
    })
    channel.port2.postMessage(isAlive(true))
    channel.port2.postMessage(appended)
    await both
    expect(taken).toEqual([appended])
  })
})
