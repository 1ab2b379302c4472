import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { limits } from '../../../../src/base/limits/limits.js'
import { ShardWaits } from '../../../../src/dispatch/links/shard-waits.js'

let away: Set<number>
let looked: number
let waits: ShardWaits

beforeEach(() => {
  vi.useFakeTimers()
  away = new Set()
  looked = 0
  waits = new ShardWaits((shard) => {
    looked += 1
    return shard === undefined ? away.size === 0 : !away.has(shard)
  })
})

afterEach(() => {
  vi.useRealTimers()
})

/** Who waits says when that is over. */
function waiting(shard?: number) {
  const state = { isOver: false }
  void waits.until(shard).then(() => (state.isOver = true))
  return state
}

it('lets those go on at once whose shard may be answered from, and the others when theirs may', async () => {
  away.add(1)
  const [other, own, all] = [waiting(0), waiting(1), waiting()]
  await vi.advanceTimersByTimeAsync(limits.shardMoveLookMs)
  expect([other.isOver, own.isOver, all.isOver]).toEqual([true, false, false])
  away.clear()
  await vi.advanceTimersByTimeAsync(limits.shardMoveLookMs)
  expect([own.isOver, all.isOver]).toEqual([true, true])
  expect(vi.getTimerCount()).toBe(0)
})

it('has nobody wait for longer than a shard takes to move', async () => {
  away.add(1)
  const first = waiting(1)
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2)
  const second = waiting(1)
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2 + limits.shardMoveLookMs)
  expect([first.isOver, second.isOver]).toEqual([true, false])
  await vi.advanceTimersByTimeAsync(limits.shardMoveMs / 2)
  expect(second.isOver).toBe(true)
  expect(vi.getTimerCount()).toBe(0)
})

it('looks once for all who wait for the same, and has no more of them than commands', async () => {
  away.add(1)
  const all = Array.from({ length: limits.shardQueueMax }, () => waiting(1))
  const one = waiting(1)
  looked = 0
  await vi.advanceTimersByTimeAsync(limits.shardMoveLookMs)
  expect(looked).toBe(1)
  expect([one.isOver, all.some(({ isOver }) => isOver)]).toEqual([true, false])
  away.clear()
  await vi.advanceTimersByTimeAsync(limits.shardMoveLookMs)
  expect(all.every(({ isOver }) => isOver)).toBe(true)
})
