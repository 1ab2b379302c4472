import { Worker } from 'node:worker_threads'
import { describe, expect, it } from 'vitest'
import { machineClock } from '../../../../src/base/clock.js'
import { LeaseMemory } from '../../../../src/protocol/lease-memory.js'

describe('the lease in shared memory', () => {
  it('holds until its time is over, and is extended but never shortened', () => {
    const clock = { nowMs: 0 }
    const lease = new LeaseMemory(undefined, () => clock.nowMs)
    expect(lease.holds()).toBe(false)
    lease.extend(100)
    lease.extend(50)
    expect([lease.holds(), lease.untilMs]).toEqual([true, 100])
    clock.nowMs = 100
    expect(lease.holds()).toBe(false)
    lease.extend(200)
    expect(lease.holds()).toBe(true)
  })

  it('ends permanently, whatever is confirmed later', () => {
    const lease = new LeaseMemory(undefined, () => 0)
    lease.extend(100)
    lease.end()
    lease.extend(1_000)
    expect(lease.holds()).toBe(false)
  })

  it('is shared by all threads that have its memory', () => {
    const lease = new LeaseMemory()
    const other = new LeaseMemory(lease.memory)
    lease.extend(machineClock() + 60_000)
    expect(other.holds()).toBe(true)
    other.end()
    expect(lease.holds()).toBe(false)
  })

  it('uses a clock that is the same in all threads', async () => {
    const code = `require('node:worker_threads').parentPort.postMessage(Number(process.hrtime.bigint()) / 1e6)`
    const before = machineClock()
    const worker = new Worker(code, { eval: true })
    const there = await new Promise<number>((resolve) => worker.once('message', resolve))
    expect(there).toBeGreaterThanOrEqual(before)
    expect(there).toBeLessThanOrEqual(machineClock())
  })
})
