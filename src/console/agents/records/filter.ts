import type { PagedQueryBody, WhereCondition } from '../../../client/index.js'
import { fieldPathDetail, fieldSteps } from '../../../strand/field-path.js'
import { isoOf, msOfField } from '../../parts/format.js'

/** The value types that the form offers. An automatic value is a number, true or false if it looks like it. */
export const valueTypes = ['automatic', 'text', 'number', 'yes or no', 'JSON'] as const

export type ValueType = (typeof valueTypes)[number]

/** A condition as typed. */
export interface ConditionDraft {
  field: string
  op: WhereCondition['op']
  valueType: ValueType
  value: string
}

/** The most conditions of a filter (`where` of a query). */
export const CONDITIONS_MAX = 16

/** A filter as typed. */
export interface FilterDraft {
  /** Record types, or prefixes with `*`, separated by commas or spaces. */
  types: string
  conditions: ConditionDraft[]
  /** Values of datetime-local fields, in the chosen time zone; empty means unbounded. */
  from: string
  to: string
}

export const noFilter: FilterDraft = { types: '', conditions: [], from: '', to: '' }

export const emptyCondition: ConditionDraft = { field: '', op: 'eq', valueType: 'automatic', value: '' }

/** The operators that the form offers. */
export const operators: readonly ConditionDraft['op'][] = [
  'eq',
  'ne',
  'in',
  'lt',
  'lte',
  'gt',
  'gte',
  'exists',
]

export function operatorOf(text: string | undefined): ConditionDraft['op'] | undefined {
  return operators.find((one) => one === text)
}

/** The query of a filter. @returns undefined for an empty filter; the fault of an invalid one */
export function queryOf(draft: FilterDraft): { query: PagedQueryBody } | { fault: string } | undefined {
  const types = draft.types.split(/[\s,]+/).filter((type) => type !== '')
  const wrong = types.find((type) => !/^([a-z0-9_./-]{1,64}|[a-z0-9_./-]{0,63}\*)$/.test(type))
  if (wrong !== undefined)
    return { fault: `Expected types of a-z 0-9 _ . / -, optionally ending with *, got “${wrong}”` }
  const where: WhereCondition[] = []
  for (const condition of draft.conditions) {
    const field = condition.field.trim()
    if (field === '') return { fault: 'Expected the name of a field in each condition' }
    if (fieldSteps(field) === undefined) return { fault: `${fieldPathDetail}, got “${field}”` }
    const value = valueOf(condition)
    if ('fault' in value) return value
    where.push({ field, op: condition.op, value: value.value })
  }
  if (types.length === 0 && where.length === 0 && draft.from === '' && draft.to === '') return undefined
  const [from, to] = [msOfField(draft.from), msOfField(draft.to)]
  return {
    query: {
      type: 'time_range',
      order: 'desc',
      ...(types.length > 0 && { types }),
      ...(where.length > 0 && { where }),
      ...(from !== undefined && { from_ts: isoOf(from) }),
      ...(to !== undefined && { to_ts: isoOf(to) }),
    },
  }
}

/** The value of a condition in its type. Operators compare only values of the same JSON type. */
export function valueOf(condition: ConditionDraft): { value: unknown } | { fault: string } {
  const { field, op, valueType, value } = condition
  if (op === 'exists' || valueType === 'yes or no') return { value: value !== 'no' }
  if (valueType === 'JSON') return jsonOf(condition)
  if (op !== 'in' && valueType !== 'number') return { value: valueType === 'text' ? value : guessed(value) }
  if (op !== 'in') return numberOf(field, value)
  const items = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (valueType !== 'number') return { value: valueType === 'text' ? items : items.map(guessed) }
  const numbers = items.map((item) => numberOf(field, item))
  return numbers.find((number) => 'fault' in number) ?? { value: items.map(Number) }
}

const jsonNumber = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/

/**
 * A number, true or false if the text is one in JSON. An integer that no number holds exactly is an id, and
 * stays a text.
 */
function guessed(text: string): string | number | boolean {
  const word = text.trim()
  if (word === 'true' || word === 'false') return word === 'true'
  const value = Number(word)
  const isExact = Number.isSafeInteger(value) || /[.eE]/.test(word)
  return jsonNumber.test(word) && Number.isFinite(value) && isExact ? value : text
}

function numberOf(field: string, text: string): { value: number } | { fault: string } {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value)) return { value }
  return { fault: `Expected a number for ${field}, got “${text}”` }
}

function jsonOf({ field, value: text }: ConditionDraft): { value: unknown } | { fault: string } {
  try {
    const value: unknown = JSON.parse(text)
    return { value }
  } catch {
    return { fault: `Expected JSON for ${field}, for example "text", 12 or ["a","b"]` }
  }
}
