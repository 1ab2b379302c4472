import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { ThreadWatch, type ThreadHealth } from '../../src/dispatch/threads/thread-watch.js'
import { Heartbeat } from '../../src/protocol/heartbeat.js'

const silenceMaxMs = 30_000

let worker: Worker
let heartbeat: Heartbeat
let watch: ThreadWatch
let nowMs: number

beforeEach(() => {
  worker = new Worker('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)', { eval: true })
  heartbeat = new Heartbeat()
  watch = new ThreadWatch(worker, heartbeat)
  nowMs = 0
})

afterEach(() => worker.terminate())

/** Looks as often as it is looked within that time, until the verdict is another one; gives when that was. */
function lookFor(forMs: number, waiting: boolean): { verdict: ThreadHealth; afterMs: number } {
  const fromMs = nowMs
  let verdict: ThreadHealth = 'well'
  while (verdict === 'well' && nowMs - fromMs < forMs) {
    nowMs += limits.shardLookMs
    verdict = watch.look(nowMs, { waiting, silenceMaxMs })
  }
  return { verdict, afterMs: nowMs - fromMs }
}

describe('the watch of a thread', () => {
  it('ends one that does not come further with what it has to do', async () => {
    watch.opened()
    const ended = once(worker, 'exit')
    expect(lookFor(silenceMaxMs, true).verdict).toBe('well')
    expect(lookFor(limits.shardLookMs, true).verdict).toBe('hung')
    expect(watch.ending).toBe(true)
    await ended
  })

  it('lets one be that comes further, however long it takes, and one with nothing to do', () => {
    watch.opened()
    for (let part = 0; part < 100; part++) {
      expect(lookFor(silenceMaxMs - limits.shardLookMs, true).verdict).toBe('well')
      heartbeat.beat()
    }
    expect(lookFor(100 * silenceMaxMs, false).verdict).toBe('well')
  })

  it('gives one that opens its store longer', () => {
    const { verdict, afterMs } = lookFor(Infinity, false)
    expect(verdict).toBe('hung')
    expect(afterMs).toBe(limits.shardOpenMs + limits.shardLookMs)
  })

  it('tells of one that does not end by that', () => {
    watch.opened()
    expect(lookFor(Infinity, true).verdict).toBe('hung')
    expect(lookFor(Infinity, true)).toEqual({
      verdict: 'stuck',
      afterMs: limits.shardEndMs + limits.shardLookMs,
    })
  })
})
