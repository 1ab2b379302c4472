// @run on the built program
import { describe, expect, it } from 'vitest'
import { limits } from '../../../src/base/limits/limits.js'
import { locateFault } from '../../../src/strand/json-fault.js'
import { malformedJson, readJson } from '../../../src/strand/json.js'
import { fc } from '../../support/fast-check.js'

const detailOf = (text: string) => locateFault(Buffer.from(text), malformedJson).detail

const isJson = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe('the position of the fault in malformed JSON', () => {
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
    ['{"a": 01}', 'line 1, column 7', 'a valid JSON number'],
    ['{"a": 1.}', 'line 1, column 7', 'a valid JSON number'],
    ['{"a": "b', 'line 1, column 9', 'a closing quote, but the text ends there'],
    ['{"a": "b\n"}', 'line 1, column 9', 'an escape such as \\n in place of a control character'],
    ['"\\x"', 'line 1, column 3', 'one of "\\/bfnrtu after the backslash'],
    ['"\\u12g4"', 'line 1, column 4', 'four hex digits'],
    ['{"ä😀": x}', 'line 1, column 8', 'a value'],
    ['{} {}', 'line 1, column 4', 'the end of the text'],
    ['[}', 'line 1, column 2', 'a value or ]'],
    ['{"a":1]', 'line 1, column 7', 'a comma or }'],
    ['\ufeff{}', 'line 1, column 1', 'a value'],
  ])('is in the detail for %j: %s', (text, position, needs) => {
    expect(detailOf(text)).toBe(`Expected one JSON value: at ${position} there should be ${needs}`)
  })

  it('exists if and only if the parser refuses the text', () => {
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
        fc.tuple(fc.nat(text.length), fc.nat(2), pieces).map(([at, removed, put]) => {
          return text.slice(0, at) + put + text.slice(at + removed)
        }),
      ),
      fc.json(),
    )
    let accepted = 0
    fc.assert(
      fc.property(texts, (text) => {
        // Replaces lone surrogates, which have no UTF-8.
        const whole = Buffer.from(text).toString()
        if (isJson(whole)) accepted += 1
        expect([whole, detailOf(whole) === malformedJson.detail]).toEqual([whole, isJson(whole)])
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(200)
  })

  it('is not searched in a body that is too long, and not added to other refusals', () => {
    const long = Buffer.alloc(limits.jsonFaultBytesMax + 1, '[')
    expect(locateFault(long, malformedJson)).toBe(malformedJson)
    const doubled = Buffer.from('{"a":1,"a":2}')
    const refusal = readJson(doubled, 4)
    expect('code' in refusal && locateFault(doubled, refusal)).toBe(refusal)
  })

  it('is found in a large body of brackets', () => {
    expect(detailOf('['.repeat(limits.jsonFaultBytesMax))).toContain(
      `column ${limits.jsonFaultBytesMax + 1} `,
    )
  })
})
