// @run on the built program
import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { type Effort, compareAll, matchesAll, matchesAny } from '../../../src/strand/condition.js'
import { type Condition, operators, valueFault } from '../../../src/strand/operators.js'
import { fieldOf } from '../../../src/strand/field-path.js'
import { canonicalJson } from '../../../src/strand/json.js'

const bytesOf = (value: unknown) => Buffer.from(canonicalJson(value))

/** A simple implementation of the same rules on parsed values. */
function holds(body: unknown, condition: Condition): boolean {
  const { field, op, value, ci } = condition
  const found = fieldOf(body, field)
  if (ci === true || op === 'contains' || op === 'starts_with') return textHolds(found, condition)
  if (op === 'exists') return (found !== undefined) === (value !== false)
  if (found === undefined) return false
  const same = (one: unknown) => canonicalJson(one) === canonicalJson(found)
  if (op === 'in') return Array.isArray(value) && value.some(same)
  if (op === 'eq') return same(value)
  if (kindOf(found) !== kindOf(value)) return false
  if (op === 'ne') return !same(value)
  if (typeof found === 'number' && typeof value === 'number') return ordered(found, op, value)
  if (typeof found === 'string' && typeof value === 'string') return ordered(found, op, value)
  return false
}

function textHolds(found: unknown, { op, value, ci }: Condition): boolean {
  const pattern = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const matches = (text: string, ...[begin, part, end]: [string, string, string]) =>
    new RegExp(`${begin}${pattern(part)}${end}`, ci === true ? 'iu' : 'u').test(text)
  const isSame = (one: unknown, other: unknown) =>
    typeof one === 'string' && typeof other === 'string'
      ? matches(one, '^', other, '$')
      : one === other && (one === null || typeof one !== 'object')
  if (op === 'contains' && Array.isArray(found)) return found.some((item) => isSame(item, value))
  if (typeof found !== 'string') return false
  if (op === 'in') return Array.isArray(value) && value.some((item) => isSame(found, item))
  if (typeof value !== 'string') return false
  if (op === 'contains') return matches(found, '', value, '')
  if (op === 'starts_with') return matches(found, '^', value, '')
  return isSame(found, value) === (op === 'eq')
}

/** Whether a condition that fails compares a number with text, or text with a number. */
function isMismatch(body: unknown, { field, op, value }: Condition): boolean {
  const types = new Set((op === 'in' && Array.isArray(value) ? value : [value]).map((each) => typeof each))
  const found = typeof fieldOf(body, field)
  if (op === 'exists' || types.size !== 1) return false
  return (types.has('number') && found === 'string') || (types.has('string') && found === 'number')
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function ordered<T extends number | string>(found: T, op: Condition['op'], value: T): boolean {
  if (op === 'lt') return found < value
  if (op === 'lte') return found <= value
  return op === 'gt' ? found > value : found >= value
}

const key = fc.constantFrom('a', 'b', 'aa', '0', '1', '10', 'é', '"', '\\', '', ',', ':{', 'length', 'a b')
const leaf = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    1,
    1.5,
    1e21,
    -1e-7,
    '',
    'a',
    'é',
    '"',
    '\\"',
    '}',
    '😀',
    'A',
    'É',
    'aé',
    'ς',
    'Σ',
    '',
  ),
  fc.string({ unit: 'binary', maxLength: 3 }).filter((text) => !/\p{Surrogate}/u.test(text)),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
}))
const steps = fc.array(key, { minLength: 1, maxLength: 3 })
const path = fc.oneof(
  steps.map((names) => names.join('.')),
  steps.map((names) => `/${names.join('/')}`),
)
const value = fc.oneof(json, fc.array(json, { maxLength: 4 }))
const condition: fc.Arbitrary<Condition> = fc.oneof(
  fc.record({ field: path, op: fc.constantFrom(...operators), value }),
  fc.record({
    field: path,
    op: fc.constantFrom('eq', 'ne', 'in', 'contains', 'starts_with'),
    value,
    ci: fc.constant(true),
  }),
)
const body = fc.dictionary(key, json, { maxKeys: 6 })

/** Conditions on values of the body, so that not all of them are false. */
const pair = fc.tuple(body, fc.array(condition, { maxLength: 4 }), fc.boolean()).map(([one, list, taken]) => {
  const conditions = list.map((each): Condition => {
    const found = fieldOf(one, each.field)
    if (!taken || found === undefined) return each
    const near = each.ci === true && typeof found === 'string' ? found.toUpperCase() : found
    if (each.op === 'contains' && Array.isArray(near)) return { ...each, value: near[0] }
    return { ...each, value: each.op === 'in' ? [each.value, near] : near }
  })
  return { body: one, conditions }
})

describe('conditions on canonical JSON', () => {
  it('have the same results as on parsed values', () => {
    fc.assert(
      fc.property(pair, ({ body: one, conditions }) => {
        const bytes = bytesOf(one)
        const each = conditions.map((condition) => holds(one, condition))
        expect(conditions.map((condition) => matchesAll(bytes, [condition]))).toEqual(each)
        expect(matchesAll(bytes, conditions)).toBe(each.every(Boolean))
        const first = each.indexOf(false)
        const failed = conditions[first]
        const mismatched = failed !== undefined && isMismatch(one, failed)
        const compared = failed === undefined || (mismatched && first)
        expect(compareAll(bytes, conditions, { bytes: 0 })).toBe(compared)
        const choices = conditions.map((condition) => ({ conditions: [condition] }))
        expect(matchesAny(bytes, choices)).toBe(each.some(Boolean))
        const open = choices.map((_choice, at) => at % 2 === 0)
        expect(matchesAny(bytes, choices, { open })).toBe(each.some((one, at) => one && open[at] === true))
      }),
      { numRuns: 3_000 },
    )
  })

  it('match any body if a list is empty, and no body without lists', () => {
    expect(matchesAll(bytesOf({}), [])).toBe(true)
    expect(matchesAny(bytesOf({}), [])).toBe(false)
    const choices = [{ conditions: [{ field: 'a', op: 'exists', value: true } as const] }, { conditions: [] }]
    expect(matchesAny(bytesOf({}), choices)).toBe(true)
    expect(matchesAny(bytesOf({}), choices, { open: [true, false] })).toBe(false)
  })

  it('return the index of a condition that compares a number with text', () => {
    const bytes = bytesOf({ n: 7, text: '7', list: [7] })
    const on = (field: string, op: Condition['op'], value: unknown): Condition => ({ field, op, value })
    const compared = (...conditions: Condition[]) => compareAll(bytes, conditions, { bytes: 0 })
    for (const op of ['eq', 'ne', 'lt', 'lte', 'gt', 'gte'] as const) {
      expect(compared(on('n', 'eq', 7), on('n', op, '7'))).toBe(1)
      expect(compared(on('/text', op, 7), on('n', 'eq', 8))).toBe(0)
    }
    expect(compared(on('n', 'in', ['7', '8']))).toBe(0)
    for (const unlike of [true, null, [7], { n: 7 }]) expect(compared(on('n', 'eq', unlike))).toBe(false)
    expect(compared(on('n', 'in', ['7', 8]))).toBe(false)
    expect(compared(on('n', 'in', []))).toBe(false)
    expect(compared(on('list', 'eq', 7), on('n', 'eq', '7'))).toBe(false)
    expect(compared(on('missing', 'eq', 7))).toBe(false)
    expect(compared(on('n', 'exists', false))).toBe(false)
    expect(compared(on('n', 'gt', 7))).toBe(false)
    expect(compared(on('n', 'eq', 7), on('text', 'eq', '7'))).toBe(true)
    expect(compared()).toBe(true)
  })

  it('are refused if operator, value and case have no meaning together', () => {
    const faults: [Omit<Condition, 'field'>, string][] = [
      [{ op: 'contains', value: 'x'.repeat(251) }, 'Expected at most 250 characters with contains'],
      [{ op: 'contains', value: ['x'] }, 'Expected text, a number, true, false or null with contains'],
      [{ op: 'starts_with', value: 1 }, 'Expected text with starts_with'],
      [{ op: 'eq', value: 1, ci: true }, 'Expected text with ci'],
      [{ op: 'in', value: ['a', 1], ci: true }, 'Expected text with ci'],
      [{ op: 'lt', value: 'a', ci: true }, 'Expected ci only with eq, ne, in, contains, starts_with'],
    ]
    for (const [compared, detail] of faults) expect(valueFault(compared)).toBe(detail)
    const fine = { op: 'contains', value: 'x'.repeat(250), ci: true } as const
    expect(valueFault(fine)).toBeUndefined()
    expect(valueFault({ op: 'contains', value: null })).toBeUndefined()
  })

  it('cost as many bytes as are searched and compared', () => {
    const long = 'x'.repeat(10_000)
    const cost = (conditions: Condition[]) => {
      const effort: Effort = { bytes: 0 }
      matchesAll(bytesOf({ long, n: 1 }), conditions, effort)
      return effort.bytes
    }
    expect(cost([])).toBe(0)
    const one = cost([{ field: 'n', op: 'eq', value: 2 }])
    expect(one).toBeGreaterThan(10_000)
    expect(one).toBeLessThan(10_200)
    expect(cost([{ field: 'long', op: 'in', value: [1, 'y'.repeat(10_000)] }])).toBeGreaterThan(20_000)
    expect(cost([{ field: 'long', op: 'lt', value: long }])).toBeGreaterThan(30_000)
    // Ten fields are found in one search.
    const many = Array.from({ length: 10 }, (): Condition => ({ field: 'n', op: 'eq', value: 1 }))
    expect(cost(many)).toBeLessThan(11_000)
  })
})
