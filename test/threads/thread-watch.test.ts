import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { ThreadWatch, type ThreadHealth } from '../../src/dispatch/threads/thread-watch.js'
import { Heartbeat } from '../../src/protocol/heartbeat.js'

const stallMaxMs = 30_000

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

/**
 * Checks the thread at the usual interval for `forMs`, or until the verdict changes.
 * @returns the verdict and its time
 */
function checkFor(forMs: number, waiting: boolean): { verdict: ThreadHealth; afterMs: number } {
  const fromMs = nowMs
  let verdict: ThreadHealth = 'well'
  while (verdict === 'well' && nowMs - fromMs < forMs) {
    nowMs += limits.shardCheckMs
    verdict = watch.check(nowMs, { waiting, stallMaxMs })
  }
  return { verdict, afterMs: nowMs - fromMs }
}

describe('the watch of a thread', () => {
  it('terminates a thread that makes no progress with waiting work', async () => {
    watch.opened()
    const ended = once(worker, 'exit')
    expect(checkFor(stallMaxMs, true).verdict).toBe('well')
    expect(checkFor(limits.shardCheckMs, true).verdict).toBe('hung')
    expect(watch.ending).toBe(true)
    await ended
  })

  it('does not terminate a thread that makes progress or has no work', () => {
    watch.opened()
    for (let part = 0; part < 100; part++) {
      expect(checkFor(stallMaxMs - limits.shardCheckMs, true).verdict).toBe('well')
      heartbeat.step()
    }
    expect(checkFor(100 * stallMaxMs, false).verdict).toBe('well')
  })

  it('allows more time for a thread that is opening its store', () => {
    const { verdict, afterMs } = checkFor(Infinity, false)
    expect(verdict).toBe('hung')
    expect(afterMs).toBe(limits.shardOpenMs + limits.shardCheckMs)
  })

  it('reports a thread that cannot be terminated', () => {
    watch.opened()
    expect(checkFor(Infinity, true).verdict).toBe('hung')
    expect(checkFor(Infinity, true)).toEqual({
      verdict: 'stuck',
      afterMs: limits.shardEndMs + limits.shardCheckMs,
    })
  })
})
