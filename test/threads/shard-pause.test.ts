import { afterEach, beforeEach, expect, it } from 'vitest'
import { limits } from '../../src/base/limits/limits.js'
import { TestShard, appendNumber } from '../support/shard/shard.js'

/* A shard pauses while a backup takes its snapshots (docs/adr/0041-one-log.md). */

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

/** The numbers of all answered commands. */
const answeredIds = () => shard.frames.flatMap(({ outcomes }) => outcomes.map(([id]) => id))
const flush = (rest: boolean) => ({ kind: 'storeFlush', rest }) as const

it('carries out nothing after a flush that requests a pause, until it is resumed', () => {
  shard.turn([[1, flush(true)]])
  const { flushedSegment } = shard.store
  expect(shard.frames.flatMap(({ outcomes }) => outcomes)).toEqual([
    [1, { kind: 'flushed', segment: flushedSegment }],
  ])
  expect(shard.turn([[2, appendNumber('a', 1)]])).toBe(false)
  expect(answeredIds()).toEqual([1])
  expect(shard.store.segments.written).toBe(flushedSegment)
  shard.turn([[3, { kind: 'storeResume' }]])
  expect(answeredIds()).toEqual([1, 3, 2])
})

it('resumes by itself after the maximum pause', () => {
  shard.turn([
    [1, flush(true)],
    [2, appendNumber('a', 1)],
  ])
  steadyMs += limits.storePauseMs - 1
  shard.turn()
  expect(answeredIds()).toEqual([1])
  steadyMs += 1
  shard.turn()
  expect(answeredIds()).toEqual([1, 2])
})

it('does not pause unless that is requested', () => {
  shard.turn([
    [1, flush(false)],
    [2, appendNumber('a', 1)],
  ])
  expect(answeredIds()).toEqual([1, 2])
})
