// @run on the built program
import { describe, expect, it } from 'vitest'
import {
  formatClockCursor,
  parseClockCursor,
  notYetPassed,
} from '../../../../../src/front/http/streams/cursor.js'

const clock = (ms: number) => `${ms.toString(16).padStart(12, '0')}-0000`
const at = (ms: number) => ({ ms, counter: 0 })

describe('the cursor of a global stream', () => {
  it('has one clock reading per shard', () => {
    const cursor = parseClockCursor(`${clock(3)}.${clock(5)}`, 2)
    expect(cursor).toEqual({ reached: [at(3), at(5)], seen: [] })
    expect(cursor && formatClockCursor(cursor)).toBe(`${clock(3)}.${clock(5)}`)
  })

  it('starts at the oldest reading for another number of shards, and skips records that were already sent', () => {
    const cursor = parseClockCursor(`${clock(3)}.${clock(5)}.${clock(4)}`, 2)
    expect(cursor).toEqual({ reached: [at(3), at(3)], seen: [[at(3), at(5), at(4)]] })
    expect(cursor && formatClockCursor(cursor)).toBe(
      `${clock(3)}.${clock(3)}~${clock(3)}.${clock(5)}.${clock(4)}`,
    )
  })

  it('uses the later positions of two cursors with the same number of shards', () => {
    const cursor = parseClockCursor(`${clock(9)}~${clock(1)}.${clock(8)}~${clock(7)}.${clock(2)}`, 3)
    expect(cursor).toEqual({
      reached: [at(9), at(9), at(9)],
      seen: [[at(9)], [at(7), at(8)]],
    })
  })

  it('distinguishes records with the same reading', () => {
    const tie = '0123456789abcdef'
    const cursor = parseClockCursor(`${clock(3)}-${tie}.${clock(5)}`, 2)
    expect(cursor?.reached).toEqual([{ ...at(3), tie }, at(5)])
    expect(cursor && formatClockCursor(cursor)).toBe(`${clock(3)}-${tie}.${clock(5)}`)
  })

  it('drops positions that every shard has passed', () => {
    const seen = [[at(3), at(5)]]
    expect(notYetPassed(seen, [at(4), at(9)])).toEqual(seen)
    expect(notYetPassed(seen, [{ ...at(5), tie: '0'.repeat(16) }, at(9)])).toEqual(seen)
    expect(notYetPassed(seen, [at(5), at(9)])).toEqual([])
  })

  it.each(['', '1', `${clock(1)}.`, `${clock(1)}~`, `${clock(1)}-12`, `${clock(1)}.x`, `~${clock(1)}`])(
    'cannot be %j',
    (text) => {
      expect(parseClockCursor(text, 1)).toBeUndefined()
    },
  )

  it('has at most as many readings as a directory can have shards', () => {
    const readings = (count: number) => Array.from({ length: count }, () => clock(1)).join('.')
    expect(parseClockCursor(readings(16), 2)?.seen).toHaveLength(1)
    expect(parseClockCursor(readings(17), 2)).toBeUndefined()
  })
})
