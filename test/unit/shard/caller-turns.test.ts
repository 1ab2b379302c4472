import { describe, expect, it } from 'vitest'
import { CallerTurns } from '../../../workers/shard/caller-turns.js'

function filled(...waiting: [caller: string, item: number][]): CallerTurns<number> {
  const turns = new CallerTurns<number>()
  for (const [caller, item] of waiting) turns.push(caller, item)
  return turns
}

describe('commands of many callers', () => {
  it('are taken one of each in turn, those of one caller in their order', () => {
    const turns = filled(['a', 1], ['a', 2], ['a', 3], ['b', 4], ['c', 5], ['b', 6])
    expect(turns.length).toBe(6)
    expect(turns.peek()).toBe(1)
    expect(turns.takeAll()).toEqual([1, 4, 5, 2, 6, 3])
    expect([turns.length, turns.peek(), turns.take()]).toEqual([0, undefined, undefined])
  })

  it('let a caller that comes late wait for one of each other', () => {
    const turns = filled(...Array.from({ length: 60 }, (_none, n): [string, number] => ['a', n]))
    expect([turns.take(), turns.take()]).toEqual([0, 1])
    turns.push('b', 100)
    expect([turns.take(), turns.take(), turns.take()]).toEqual([2, 100, 3])
    turns.push('b', 101)
    expect([turns.take(), turns.take()]).toEqual([4, 101])
    expect(turns.takeAll()).toEqual(Array.from({ length: 55 }, (_none, n) => n + 5))
  })
})
