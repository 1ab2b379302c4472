import { describe, expect, it } from 'vitest'
import { CallerTurns } from '../../../src/base/caller-turns.js'

function filled(...waiting: [caller: string, item: number][]): CallerTurns<number> {
  const turns = new CallerTurns<number>()
  for (const [caller, item] of waiting) turns.push(caller, item)
  return turns
}

describe('commands of many callers', () => {
  it('are taken round-robin by caller, and in order of arrival for each caller', () => {
    const turns = filled(['a', 1], ['a', 2], ['a', 3], ['b', 4], ['c', 5], ['b', 6])
    expect(turns.length).toBe(6)
    expect(turns.peek()).toBe(1)
    expect(turns.takeAll()).toEqual([1, 4, 5, 2, 6, 3])
    expect([turns.length, turns.peek(), turns.take()]).toEqual([0, undefined, undefined])
  })

  it('make a late caller wait for one command of each other caller', () => {
    const turns = filled(...Array.from({ length: 60 }, (_none, n): [string, number] => ['a', n]))
    expect([turns.take(), turns.take()]).toEqual([0, 1])
    turns.push('b', 100)
    expect([turns.take(), turns.take(), turns.take()]).toEqual([2, 100, 3])
    turns.push('b', 101)
    expect([turns.take(), turns.take()]).toEqual([4, 101])
    expect(turns.takeAll()).toEqual(Array.from({ length: 55 }, (_none, n) => n + 5))
  })

  it('are passed over while their first one cannot be taken, without losing their turn', () => {
    const turns = filled(['a', 9], ['a', 1], ['b', 2], ['b', 3], ['c', 4])
    expect([turns.take((item) => item < 9), turns.take((item) => item < 9)]).toEqual([2, 4])
    expect(turns.take((item) => item > 9)).toBeUndefined()
    expect(turns.takeAll()).toEqual([9, 3, 1])
  })

  it('end their turn without losing their first one', () => {
    const turns = filled(['a', 1], ['a', 2], ['b', 3])
    turns.pass()
    expect([turns.length, ...turns.takeAll()]).toEqual([3, 3, 1, 2])
  })

  it('are removed wherever they are, and the others keep their order', () => {
    const turns = filled(['a', 1], ['a', 2], ['b', 3], ['a', 4], ['c', 5])
    expect([...turns.of('a')]).toEqual([1, 2, 4])
    expect(turns.remove((item) => item === 2 || item === 3)).toEqual([2, 3])
    expect([turns.length, ...turns.of('b')]).toEqual([3])
    expect(turns.takeAll()).toEqual([1, 5, 4])
  })
})
