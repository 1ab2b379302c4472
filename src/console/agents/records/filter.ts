import type { PagedQueryBody, WhereCondition } from '../../../client/index.js'
import { fieldPathDetail, fieldSteps } from '../../../strand/field-path.js'
import { fieldOfMs, isoOf, msOfField, msOfIso } from '../../parts/format.js'
import type { RecordOrder } from '../../parts/records/record-row.js'
import type { AddressType } from '../../parts/address.js'

export const IN_ANY_CASE = 'text in any case'

/** The value types that the form offers. An automatic value is a number, true or false if it looks like it. */
export const valueTypes = ['automatic', 'text', IN_ANY_CASE, 'number', 'yes or no', 'JSON'] as const

export type ValueType = (typeof valueTypes)[number]

/** What a form offers for a condition. */
export interface Comparisons {
  operators: readonly ConditionDraft['op'][]
  valueTypes: readonly ValueType[]
}

export const allComparisons: Comparisons = {
  operators: ['eq', 'ne', 'in', 'lt', 'lte', 'gt', 'gte', 'exists', 'contains', 'starts_with'],
  valueTypes,
}

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

export function operatorOf(text: string | undefined): ConditionDraft['op'] | undefined {
  return allComparisons.operators.find((one) => one === text)
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
    const ci = condition.valueType === IN_ANY_CASE
    where.push({ field, op: condition.op, value: value.value, ...(ci && { ci }) })
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
  const isPart = op === 'contains' || op === 'starts_with'
  const isText = valueType === 'text' || valueType === IN_ANY_CASE || (isPart && valueType === 'automatic')
  if (op !== 'in' && valueType !== 'number') return { value: isText ? value : guessed(value) }
  if (op !== 'in') return numberOf(field, value)
  const items = value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (valueType !== 'number') return { value: isText ? items : items.map(guessed) }
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

/** What the list of records shows, as its address contains it. */
export interface RecordsView {
  filter: FilterDraft
  columns: readonly string[]
  order: RecordOrder
}

/*
 * The part of an address behind `?`: `types`, `from` and `to` in UTC, so that the address means the same in
 * every time zone, for each condition and each column `where` and `column`, and `order=asc` for the oldest
 * records first.
 */

/** The columns of an address that are shown: anyone can write an address. */
const COLUMNS_MAX = 40

export const columnsType: AddressType<readonly string[]> = {
  read: (paths) => [...new Set(paths)].slice(0, COLUMNS_MAX),
  write: (paths) => paths,
  isStep: false,
}

/** Reads the part of an address behind `?`. What it cannot read is as if it were missing. */
export function viewOf(query: string): RecordsView {
  const read = new URLSearchParams(query)
  const timeOf = (name: string): string => {
    const ms = msOfIso(read.get(name) ?? '')
    return ms === undefined ? '' : fieldOfMs(ms)
  }
  return {
    filter: {
      types: read.get('types') ?? '',
      conditions: read.getAll('where').slice(0, CONDITIONS_MAX).flatMap(conditionOf),
      from: timeOf('from'),
      to: timeOf('to'),
    },
    columns: columnsType.read(read.getAll('column')),
    order: read.get('order') === 'asc' ? 'asc' : 'desc',
  }
}

/** The part of an address behind `?` for a view; empty for all records without columns. */
export function queryOfView({ filter, columns, order }: RecordsView): string {
  const query = new URLSearchParams()
  if (filter.types.trim() !== '') query.set('types', filter.types.trim())
  for (const name of ['from', 'to'] as const) {
    const ms = msOfField(filter[name])
    if (ms !== undefined) query.set(name, isoOf(ms).replace('.000Z', 'Z'))
  }
  for (const condition of filter.conditions) query.append('where', conditionText(condition))
  for (const path of columns) query.append('column', path)
  if (order === 'asc') query.set('order', order)
  return query.toString()
}

/** `field op value`, or `field op:type value`; the field is encoded, so that it has no spaces. */
function conditionText({ field, op, valueType, value }: ConditionDraft): string {
  const type = valueType === emptyCondition.valueType ? '' : `:${encodeURIComponent(valueType)}`
  return `${field.trim().replaceAll(/[%\s]/g, encodeURIComponent)} ${op}${type} ${value}`
}

function conditionOf(text: string): ConditionDraft[] {
  const [, field, op, type, value = ''] = /^(\S+) ([a-z_]+)(?::(\S+))? (.*)$/s.exec(text) ?? []
  try {
    const named = decodeURIComponent(type ?? emptyCondition.valueType)
    const valueType = valueTypes.find((one) => one === named)
    const operator = operatorOf(op)
    if (field === undefined || valueType === undefined || operator === undefined) return []
    return [{ field: decodeURIComponent(field), op: operator, valueType, value }]
  } catch {
    return []
  }
}
