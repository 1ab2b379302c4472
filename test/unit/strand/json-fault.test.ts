// @run on the built program
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { sayWhere } from '../../../src/strand/json-fault.js'
import { brokenJson, readJson } from '../../../src/strand/json.js'
import { fc } from '../../support/fast-check.js'

const told = (text: string) => sayWhere(Buffer.from(text), brokenJson).detail

const isJson = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('where a text stops being JSON', () => {
  it.each([
    ['', 'line 1, column 1', 'a value, but the text ends there'],
    ['{"a": 1,}', 'line 1, column 9', 'a name in double quotes'],
    ['{"a": 1,\n "b" 2}', 'line 2, column 6', 'a colon'],
    ['{"a": 1\r\n "b": 2}', 'line 2, column 2', 'a comma or }'],
    ['[1 2]', 'line 1, column 4', 'a comma or ]'],
    ['[1,]', 'line 1, column 4', 'a value'],
    ['[', 'line 1, column 2', 'a value or ], but the text ends there'],
    ['{', 'line 1, column 2', 'a name in double quotes or }, but the text ends there'],
    ["{'a': 1}", 'line 1, column 2', 'a name in double quotes or }'],
    ['{"a": undefined}', 'line 1, column 7', 'a value'],
    ['{"a": 01}', 'line 1, column 7', 'a number as JSON writes it'],
    ['{"a": 1.}', 'line 1, column 7', 'a number as JSON writes it'],
    ['{"a": "b', 'line 1, column 9', 'a closing quote, but the text ends there'],
    ['{"a": "b\n"}', 'line 1, column 9', 'an escape such as \\n in place of a control character'],
    ['"\\x"', 'line 1, column 3', 'one of "\\/bfnrtu after the backslash'],
    ['"\\u12g4"', 'line 1, column 4', 'four hex digits'],
    ['{"ä😀": x}', 'line 1, column 8', 'a value'],
    ['{} {}', 'line 1, column 4', 'the end of the text'],
    ['[}', 'line 1, column 2', 'a value or ]'],
    ['{"a":1]', 'line 1, column 7', 'a comma or }'],
    ['\ufeff{}', 'line 1, column 1', 'a value'],
  ])('is named for %j: %s', (text, place, needs) => {
    expect(told(text)).toBe(`Expected one JSON value: at ${place} there should be ${needs}`)
  })

  it('finds a place in every text that the parser refuses, and none in those that it takes', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      ' ',
      '\n',
      '"a"',
      '"',
      '\\',
      '\\u0041',
      'é',
      '\u0001',
      '0',
      '-',
      '1.5e3',
      '.',
      'true',
      'nul',
      'null',
      '{"a":',
      '[1,2]',
      '{"b":[]}',
    )
    const texts = fc.oneof(
      fc.array(pieces, { maxLength: 8 }).map((parts) => parts.join('')),
      fc.json().chain((text) =>
        fc.tuple(fc.nat(text.length), fc.nat(2), pieces).map(([at, gone, put]) => {
          return text.slice(0, at) + put + text.slice(at + gone)
        }),
      ),
      fc.json(),
    )
    let accepted = 0
    fc.assert(
      fc.property(texts, (text) => {
        // A text of code points: a lone surrogate has no UTF-8.
        const whole = Buffer.from(text).toString()
        if (isJson(whole)) accepted += 1
        expect([whole, told(whole) === brokenJson.detail]).toEqual([whole, isJson(whole)])
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(200)
  })

  it('looks into no body that is too long, and leaves other refusals as they are', () => {
    const long = Buffer.alloc(limits.jsonPlaceBytesMax + 1, '[')
    expect(sayWhere(long, brokenJson)).toBe(brokenJson)
    const doubled = Buffer.from('{"a":1,"a":2}')
    const refusal = readJson(doubled, 4)
    expect('code' in refusal && sayWhere(doubled, refusal)).toBe(refusal)
  })

  it('takes a body of brackets alone, however many', () => {
    expect(told('['.repeat(limits.jsonPlaceBytesMax))).toContain(`column ${limits.jsonPlaceBytesMax + 1} `)
  })
})
