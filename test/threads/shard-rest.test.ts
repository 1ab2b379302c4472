import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { TestShard, appendNumber } from '../support/shard/shard.js'

/* A shard that rests while a backup takes its snapshots (docs/adr/0041-one-log.md). */

let shard: TestShard
let steadyMs = 0

beforeEach(() => {
  shard = new TestShard()
  steadyMs = 0
  shard.steadyClock = () => steadyMs
  shard.run(appendNumber('a', 0))
  shard.frames.length = 0
})
afterEach(() => shard.remove())

/** The numbers of all commands that were told. */
const told = () => shard.frames.flatMap(({ outcomes }) => outcomes.map(([id]) => id))
const flush = (rest: boolean) => ({ kind: 'storeFlush', rest }) as const

it('stays where it was after a flush that asks for it, until it may go on', () => {
  shard.turn([[1, flush(true)]])
  const { flushedSegment } = shard.store
  expect(shard.frames.flatMap(({ outcomes }) => outcomes)).toEqual([
    [1, { kind: 'flushed', segment: flushedSegment }],
  ])
  expect(shard.turn([[2, appendNumber('a', 1)]])).toBe(false)
  expect(told()).toEqual([1])
  expect(shard.store.segments.written).toBe(flushedSegment)
  shard.turn([[3, { kind: 'storeGoOn' }]])
  expect(told()).toEqual([1, 3, 2])
})

it('goes on by itself when it has rested for as long as it may', () => {
  shard.turn([
    [1, flush(true)],
    [2, appendNumber('a', 1)],
  ])
  steadyMs += limits.storeRestMs - 1
  shard.turn()
  expect(told()).toEqual([1])
  steadyMs += 1
  shard.turn()
  expect(told()).toEqual([1, 2])
})

it('does not rest where nobody asks for it', () => {
  shard.turn([
    [1, flush(false)],
    [2, appendNumber('a', 1)],
  ])
  expect(told()).toEqual([1, 2])
})
