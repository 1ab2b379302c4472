import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { ShardWaits } from '../../../../src/dispatch/links/shard-waits.js'

let away: Set<number>
let checks: number
let waits: ShardWaits

beforeEach(() => {
  vi.useFakeTimers()
  away = new Set()
  checks = 0
  waits = new ShardWaits((shard) => {
    checks += 1
    return shard === undefined ? away.size === 0 : !away.has(shard)
  })
})

afterEach(() => {
  vi.useRealTimers()
})

/** Starts a wait. `isOver` is true when it has ended. */
function waiting(shard?: number) {
  const state = { isOver: false }
  void waits.until(shard).then(() => (state.isOver = true))
  return state
}

it('ends each wait when its shard, or every shard, may be answered from', async () => {
  away.add(1)
  const [other, own, all] = [waiting(0), waiting(1), waiting()]
  await vi.advanceTimersByTimeAsync(limits.shardMoveCheckMs)
  expect([other.isOver, own.isOver, all.isOver]).toEqual([true, false, false])
  away.clear()
  await vi.advanceTimersByTimeAsync(limits.shardMoveCheckMs)
  expect([own.isOver, all.isOver]).toEqual([true, true])
  expect(vi.getTimerCount()).toBe(0)
})

it('ends every wait after the time in which a shard moves', async () => {
  away.add(1)
  const first = waiting(1)
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2)
  const second = waiting(1)
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2 + limits.shardMoveCheckMs)
  expect([first.isOver, second.isOver]).toEqual([true, false])
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2)
  expect(second.isOver).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
})

it('checks once for all waits of a shard, and limits their number', async () => {
  away.add(1)
  const all = Array.from({ length: limits.shardQueueMax }, () => waiting(1))
  const one = waiting(1)
  checks = 0
  await vi.advanceTimersByTimeAsync(limits.shardMoveCheckMs)
  expect(checks).toBe(1)
  expect([one.isOver, all.some(({ isOver }) => isOver)]).toEqual([true, false])
  away.clear()
  await vi.advanceTimersByTimeAsync(limits.shardMoveCheckMs)
  expect(all.every(({ isOver }) => isOver)).toBe(true)
})
