// @run on the built program
import { describe, expect, it } from 'vitest'
import {
  formatClockCursor,
  parseClockCursor,
  unpassed,
} from '../../../../../src/front/http/streams/cursor.js'

const clock = (ms: number) => `${ms.toString(16).padStart(12, '0')}-0000`
const at = (ms: number) => ({ ms, counter: 0 })

describe('the cursor of a global stream', () => {
  it('is one reading a shard', () => {
    const cursor = parseClockCursor(`${clock(3)}.${clock(5)}`, 2)
    expect(cursor).toEqual({ reached: [at(3), at(5)], seen: [] })
    expect(cursor && formatClockCursor(cursor)).toBe(`${clock(3)}.${clock(5)}`)
  })

  it('begins at the oldest reading for another number of shards, and leaves out the records that it has seen', () => {
    const cursor = parseClockCursor(`${clock(3)}.${clock(5)}.${clock(4)}`, 2)
    expect(cursor).toEqual({ reached: [at(3), at(3)], seen: [[at(3), at(5), at(4)]] })
    expect(cursor && formatClockCursor(cursor)).toBe(
      `${clock(3)}.${clock(3)}~${clock(3)}.${clock(5)}.${clock(4)}`,
    )
  })

  it('takes of two that were made with one number of shards the later places', () => {
    const cursor = parseClockCursor(`${clock(9)}~${clock(1)}.${clock(8)}~${clock(7)}.${clock(2)}`, 3)
    expect(cursor).toEqual({
      reached: [at(9), at(9), at(9)],
      seen: [[at(9)], [at(7), at(8)]],
    })
  })

  it('tells a record from others of its reading', () => {
    const tie = '0123456789abcdef'
    const cursor = parseClockCursor(`${clock(3)}-${tie}.${clock(5)}`, 2)
    expect(cursor?.reached).toEqual([{ ...at(3), tie }, at(5)])
    expect(cursor && formatClockCursor(cursor)).toBe(`${clock(3)}-${tie}.${clock(5)}`)
  })

  it('forgets what every shard has passed', () => {
    const seen = [[at(3), at(5)]]
    expect(unpassed(seen, [at(4), at(9)])).toEqual(seen)
    expect(unpassed(seen, [{ ...at(5), tie: '0'.repeat(16) }, at(9)])).toEqual(seen)
    expect(unpassed(seen, [at(5), at(9)])).toEqual([])
  })

  it.each(['', '1', `${clock(1)}.`, `${clock(1)}~`, `${clock(1)}-12`, `${clock(1)}.x`, `~${clock(1)}`])(
    'is not %j',
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
