// @run on the built program
import { deepStrictEqual } from 'node:assert'
import { readFileSync } from 'node:fs'
import canonicalize from 'canonicalize'
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { canonicalJson, readJson } from '../../../src/strand/json.js'
import { readStrictly } from './strict-json.js'

interface JsonVectors {
  depth_max: number
  numbers: { bits: string; text: string }[]
  canonical: { input: string; canonical: string }[]
  refused: { name: string; input_hex: string }[]
}
const vectors: JsonVectors = JSON.parse(
  readFileSync(new URL('../../vectors/json.json', import.meta.url), 'utf8'),
)

function read(text: string, depthMax = 64) {
  return readJson(Buffer.from(text), depthMax)
}

// A few keys, some of them risky, so that duplicates, escapes and integer-like keys are frequent.
const keyText = fc.constantFrom(
  '"a"',
  '"b"',
  '"\\u0061"',
  '""',
  '"1"',
  '"10"',
  '"é"',
  '"\\ud83d\\ude00"',
  '"\\\\"',
  '"\\""',
)
const riskyKey = fc.constantFrom(
  '"__proto__"',
  '"\\u005f_proto__"',
  '"\\u0000"',
  '"\\ud800"',
  '"constructor"',
)
const scalarText = fc.oneof(
  fc.constantFrom(
    'null',
    'true',
    '1e400',
    '-1E+999',
    '1e-400',
    '-0',
    '0.1',
    '"\\ud800"',
    '"x:y,{"',
    '"\\"}:"',
  ),
  fc.constantFrom(
    '9007199254740991',
    '9007199254740992',
    '-9007199254740993',
    '9007199254740992.0',
    '90071992547409910e0',
  ),
  fc.integer().map(String),
  fc.string().map((text) => JSON.stringify(text)),
)
const { document } = fc.letrec<{ document: string }>((tie) => {
  const member = fc.tuple(
    fc.oneof({ weight: 9, arbitrary: keyText }, { weight: 1, arbitrary: riskyKey }),
    tie('document'),
  )
  const space = fc.constantFrom('', ' ', '\n\t')
  return {
    document: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      scalarText,
      fc
        .tuple(space, fc.array(member, { maxLength: 4 }))
        .map(
          ([gap, members]) =>
            `{${gap}${members.map(([key, value]) => `${key}${gap}:${value}`).join(`,${gap}`)}}`,
        ),
      fc.array(tie('document'), { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    ),
  }
})

describe('reading JSON', () => {
  it.each(vectors.refused)('refuses $name', ({ input_hex: hex }) => {
    expect(readJson(Buffer.from(hex, 'hex'), vectors.depth_max)).toMatchObject({ code: 'validation_failed' })
  })

  it('agrees with a slow strict reader on generated documents', () => {
    let accepted = 0
    let refused = 0
    fc.assert(
      fc.property(document, (text) => {
        const result = read(text, 5)
        const expected = readStrictly(text, 5)
        if (expected === undefined) {
          refused += 1
          expect(result).toHaveProperty('code', 'validation_failed')
        } else {
          accepted += 1
          // Uses node:assert, because vitest does not consider two members named constructor equal.
          deepStrictEqual(result, { value: expected.value })
        }
      }),
      { numRuns: 20_000, seed: 7 },
    )
    // Both verdicts must have been tried for the comparison to mean anything.
    expect(accepted).toBeGreaterThan(1_000)
    expect(refused).toBeGreaterThan(1_000)
  })

  it('agrees with the slow reader on damaged bytes', () => {
    fc.assert(
      fc.property(
        document,
        fc.nat(),
        fc.constantFrom('"', '\\', '{', '}', ':', ',', '1', ' ', 'e', ''),
        (text, at, put) => {
          const position = at % (text.length + 1)
          const damaged = text.slice(0, position) + put + text.slice(position + 1)
          const result = readJson(Buffer.from(damaged), 5)
          const expected = readStrictly(Buffer.from(damaged).toString(), 5)
          expect('value' in result).toBe(expected !== undefined)
        },
      ),
      { numRuns: 20_000, seed: 8 },
    )
  })

  it('counts levels of arrays and objects', () => {
    expect(read('1', 0)).toStrictEqual({ value: 1 })
    expect(read('[]', 0)).toHaveProperty('detail', 'Expected at most 0 levels of nesting')
    expect(read('[{"a":[]},"[[[["]', 3)).toHaveProperty('value')
    expect(read('[{"a":[[]]}]', 3)).toHaveProperty('code')
  })

  it('describes what was expected', () => {
    expect(read('{"a":1,"a":1}')).toStrictEqual({
      code: 'validation_failed',
      detail: 'Expected no duplicate keys',
    })
    expect(read('[1e400]')).toHaveProperty('detail', 'Expected every number to be finite as a double')
    expect(read('{"__proto__":1}')).toHaveProperty('detail', 'Expected no key named __proto__')
    expect(readJson(Buffer.from([0x22, 0xff, 0x22]), 64)).toHaveProperty('detail', 'Expected UTF-8')
  })

  it('accepts valid texts that look like refused ones', () => {
    for (const text of [
      '"__proto__"',
      '{"a":"__proto__"}',
      '["\\u0000"]',
      '{"a":"a","b":"a"}',
      '"\\ud83d\\ude00"',
      '{"a:b":1}',
    ]) {
      expect(read(text)).toStrictEqual({ value: JSON.parse(text) })
    }
  })

  it('refuses a million open brackets without running out of stack', () => {
    expect(read('['.repeat(1_000_000))).toHaveProperty('code', 'validation_failed')
  })
})

describe('canonical JSON', () => {
  it.each(vectors.canonical)('writes $input as RFC 8785 does', ({ input, canonical }) => {
    expect(canonicalJson(JSON.parse(input))).toBe(canonical)
    expect(canonicalJson(JSON.parse(canonical))).toBe(canonical)
  })

  it.each(vectors.numbers)('writes the double $bits as $text', ({ bits, text }) => {
    expect(canonicalJson(Buffer.from(bits, 'hex').readDoubleBE())).toBe(text)
  })

  it('equals the output of the canonicalize package for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'))
        expect(canonicalJson(value)).toBe(canonicalize(value))
      }),
      { numRuns: 5_000, seed: 9 },
    )
  })

  it('orders integer-like keys by code units, at every level', () => {
    expect(canonicalJson({ b: [{ 10: 1, 9: 2 }], 2: 0, 11: 0 })).toBe('{"11":0,"2":0,"b":[{"10":1,"9":2}]}')
  })

  it('throws for values outside of JSON', () => {
    expect(() => canonicalJson([Number.POSITIVE_INFINITY])).toThrow('finite')
    expect(() => canonicalJson(undefined)).toThrow('JSON value')
    expect(() => canonicalJson(JSON.parse('{"b":1,"__proto__":{},"a":1}'))).toThrow('__proto__')
  })
})
