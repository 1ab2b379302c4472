import { describe, expect, it } from 'vitest'
import {
  anyOf,
  isBytes,
  isFlag,
  isNumber,
  isText,
  listOf,
  members,
  oneOf,
  optional,
} from '../../../src/base/shape.js'

describe('a type guard', () => {
  it.each([
    ['a text', isText, ['x', 1]],
    ['a number', isNumber, [1, '1']],
    ['a flag', isFlag, [false, 0]],
    ['bytes', isBytes, [Buffer.alloc(1), [0]]],
    ['one of some texts', oneOf('a', 'b'), ['b', 'c']],
    [
      'a list',
      listOf(isNumber),
      [
        [1, 2],
        [1, '2'],
      ],
    ],
    ['a list, even an empty one', listOf(isNumber), [[], {}]],
    ['an absent optional value', optional(isText), [undefined, null]],
    ['a present optional value', optional(isText), ['x', 1]],
    ['either of two types', anyOf(isText, isNumber), [1, true]],
  ])('accepts only %s', (_, check, [valid, wrong]) => {
    expect(check(valid)).toBe(true)
    expect(check(wrong)).toBe(false)
  })

  const isPair = members<{ left: number; right?: string }>({ left: isNumber, right: optional(isText) })

  it('requires the members of an object, and allows others', () => {
    expect(isPair({ left: 1 })).toBe(true)
    expect(isPair({ left: 1, right: 'x', more: true })).toBe(true)
    expect(isPair({ right: 'x' })).toBe(false)
    expect(isPair({ left: 1, right: 2 })).toBe(false)
    for (const other of [null, undefined, 1, 'left']) expect(isPair(other)).toBe(false)
  })

  it('ignores inherited members', () => {
    expect(isPair(Object.create({ left: 1 }))).toBe(false)
  })
})
