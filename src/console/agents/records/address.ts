import type { RecordOrder } from '../../parts/records/record-row.js'
import type { AddressType } from '../../parts/address.js'
import { fieldOfMs, isoOf, msOfField, msOfIso } from '../../parts/format.js'
import {
  CONDITIONS_MAX,
  type ConditionDraft,
  type FilterDraft,
  emptyCondition,
  operatorOf,
  valueTypes,
} from './filter.js'

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
  const [, field, op, type, value = ''] = /^(\S+) ([a-z]+)(?::(\S+))? (.*)$/s.exec(text) ?? []
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
