import { MessageChannel } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { LogAnswer } from '../../../../src/protocol/cluster-log-messages.js'
import { LogLine } from '../../../../workers/store/log/log-line.js'

const node = { node: 'a', incarnation: 1 }
const isAlive = (alive: boolean): LogAnswer => ({ kind: 'isAlive', alive })
/** An answer that took too long, and was not asked for again. */
const late: LogAnswer = { kind: 'rows', rows: [] }

describe('the line of a shard to the thread of the log', () => {
  let channel: MessageChannel
  let line: LogLine

  beforeEach(() => {
    channel = new MessageChannel()
    const shared = { shard: 0, port: channel.port1, answers: new SharedArrayBuffer(4) }
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

  it('gives up again where only those have come that it had given up', () => {
    expect(() => line.isAlive(node)).toThrow('does not answer')
    channel.port2.postMessage(isAlive(true))
    expect(() => line.isAlive(node)).toThrow('does not answer')
    channel.port2.postMessage(isAlive(true))
    channel.port2.postMessage(isAlive(false))
    expect(line.isAlive(node)).toBe(false)
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
