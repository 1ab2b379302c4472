import { describe, expect, it } from 'vitest'
import {
  type AddressType,
  choiceType,
  cursorsType,
  numberType,
  switchType,
  textType,
  timeType,
} from '../../../src/console/parts/address.js'
import { sortType } from '../../../src/console/parts/sort.js'

function isRead<T>(type: AddressType<T>, values: readonly T[]): void {
  for (const value of values) expect(type.read(type.write(value))).toEqual(value)
}

describe('values in an address', () => {
  it('are read as they were written', () => {
    isRead(textType, ['', 'a b', 'é?#&'])
    isRead(cursorsType, [[], ['one', 'two']])
    isRead(switchType, [false, true])
    isRead(numberType, [undefined, 0, 123])
    isRead(timeType, [undefined, 0, 1_700_000_000_123])
    isRead(choiceType(['week', 'day']), ['week', 'day'])
    const columns = ['Name', 'Size']
    isRead(sortType(columns, undefined), [undefined, { column: 'Size', isDescending: true }])
    isRead(sortType(columns, { column: 'Name', isDescending: false }), [
      undefined,
      { column: 'Name', isDescending: false },
      { column: 'Name', isDescending: true },
    ])
  })

  it('have their usual value if it is missing or cannot be read, which is not written', () => {
    expect([numberType.read(['-1']), timeType.read(['yesterday'])]).toEqual([undefined, undefined])
    for (const text of ['+010000-01-01T00:00Z', '+275760-09-13T00:00Z', '0000-06-01', '-000001-06-01'])
      expect(timeType.read([text])).toBeUndefined()
    for (const text of ['0001-06-01', '9999-06-01']) expect(timeType.read([text])).toBe(Date.parse(text))
    expect(choiceType(['week', 'day']).read(['year'])).toBe('week')
    expect(choiceType(['week', 'day']).write('week')).toEqual([])
    const byName = { column: 'Name', isDescending: false }
    expect(sortType(['Name'], byName).read([])).toEqual(byName)
    expect(sortType(['Name'], byName).read(['Shoe'])).toBeUndefined()
    expect(sortType(['Name'], byName).write(byName)).toEqual([])
  })

  it('have the last 20 cursors of a list with very many pages', () => {
    const cursors = Array.from({ length: 30 }, (_none, at) => `c${at}`)
    expect(cursorsType.write(cursors)).toEqual(cursors.slice(10))
    expect(cursorsType.read(cursors)).toEqual(cursors.slice(10))
  })
})
