import { useLayoutEffect, useState } from 'preact/hooks'
import { Field, Form, Moment, Problem, sameLabels, Select, TextInput } from '../../parts/field.js'
import { operatorWords } from '../../parts/rule-diff.js'
import { isUtc, msOfField } from '../../parts/format.js'
import {
  allComparisons,
  type Comparisons,
  type ConditionDraft,
  CONDITIONS_MAX,
  emptyCondition,
  type FilterDraft,
  noFilter,
  operatorOf,
  queryOf,
  valueOf,
  valueTypes,
} from './filter.js'
import { Button, Empty, Quoted, Time } from '../../parts/texts.js'
import type { RecordOrder } from '../../parts/records/record-row.js'

/** A form that filters the list of records, with the filter of the address at first and after it changes. */
export function FilterForm(props: { applied: FilterDraft; apply: (draft: FilterDraft) => void }) {
  const { applied, apply } = props
  const [draft, setDraft] = useState(applied)
  const [fault, setFault] = useState<string | undefined>(undefined)
  useLayoutEffect(() => {
    setDraft(applied)
    setFault(faultOf(applied))
  }, [JSON.stringify(applied), isUtc.value])
  const submit = (): void => {
    const found = faultOf(draft)
    setFault(found)
    if (found === undefined) apply(draft)
  }
  const clear = (): void => {
    setDraft(noFilter)
    setFault(undefined)
    apply(noFilter)
  }
  const setCondition = (at: number, condition: ConditionDraft | undefined): void => {
    const conditions = draft.conditions.flatMap((one, index) =>
      index !== at ? [one] : condition === undefined ? [] : [condition],
    )
    setDraft({ ...draft, conditions })
  }
  return (
    <Form class="filter" submit={submit} aria-label="Filter">
      <div class="filter-line">
        <Field
          name="Types"
          placeholder="reading, auth/*"
          value={draft.types}
          set={(types) => setDraft({ ...draft, types })}
        />
        <Moment name="From" value={draft.from} set={(from) => setDraft({ ...draft, from })} />
        <Moment name="To" value={draft.to} set={(to) => setDraft({ ...draft, to })} />
      </div>
      {draft.conditions.map((condition, at) => (
        // Conditions have no identity but their position.
        <Condition key={at} condition={condition} set={(changed) => setCondition(at, changed)} />
      ))}
      <Problem text={fault} />
      <div class="buttons">
        <Button
          text="Add condition"
          disabled={draft.conditions.length >= CONDITIONS_MAX}
          onClick={() => setDraft({ ...draft, conditions: [...draft.conditions, emptyCondition] })}
        />
        <Button text="Apply" type="submit" class="primary" />
        <Button text="Clear" class="quiet" onClick={clear} />
      </div>
    </Form>
  )
}

function faultOf(draft: FilterDraft): string | undefined {
  const query = queryOf(draft)
  return query !== undefined && 'fault' in query ? query.fault : undefined
}

interface ConditionProps {
  condition: ConditionDraft
  comparisons?: Comparisons
  /** The id of a datalist with suggestions for the value. */
  values?: string
  set: (condition: ConditionDraft | undefined) => void
}

export function Condition(props: ConditionProps) {
  const { condition, comparisons = allComparisons, values, set } = props
  const { op, valueType } = condition
  const isChoice = op === 'exists' || valueType === 'yes or no'
  return (
    <fieldset class="condition">
      <legend class="hidden">Condition</legend>
      <TextInput
        aria-label="Field"
        placeholder="Field, for example door.name or /door/name"
        value={condition.field}
        set={(field) => set({ ...condition, field })}
      />
      <Select
        aria-label="Comparison"
        value={op}
        options={Object.fromEntries(comparisons.operators.map((one) => [one, operatorWords[one]]))}
        set={(chosen) => set({ ...condition, op: operatorOf(chosen) ?? 'eq' })}
      />
      {op !== 'exists' && (
        <Select
          aria-label="Type of the value"
          value={valueType}
          options={sameLabels(comparisons.valueTypes)}
          set={(chosen) =>
            set({ ...condition, valueType: valueTypes.find((one) => one === chosen) ?? 'automatic' })
          }
        />
      )}
      {isChoice ? (
        <Select
          aria-label="Value"
          value={condition.value === 'no' ? 'no' : 'yes'}
          options={sameLabels(['yes', 'no'])}
          set={(value) => set({ ...condition, value })}
        />
      ) : (
        <TextInput
          aria-label="Value"
          placeholder={op === 'in' ? 'one, another' : 'Value'}
          {...(values !== undefined && { list: values })}
          value={condition.value}
          set={(value) => set({ ...condition, value })}
        />
      )}
      <Button text="Remove" class="quiet" aria-label="Remove this condition" onClick={() => set(undefined)} />
    </fieldset>
  )
}

interface FilterProps {
  filter: FilterDraft
  apply: (filter: FilterDraft) => void
}

/** The warnings of a query: each condition that found another type of value, with a button to compare that. */
export function Mismatches({ filter, apply, warnings }: FilterProps & { warnings: readonly string[] }) {
  return (
    <>
      {warnings.map((warning) => (
        <Mismatch key={warning} filter={filter} apply={apply} warning={warning} />
      ))}
    </>
  )
}

/** The warning of the server (src/front/routes/query.ts): the index of the condition, and what it compares with. */
const mismatch = /^\/where\/([0-9]+) compares .* with (a number|text), but/s

function Mismatch({ filter, apply, warning }: FilterProps & { warning: string }) {
  const [, index, compared] = mismatch.exec(warning) ?? []
  const at = Number(index)
  const condition = filter.conditions[at]
  if (condition === undefined) return <p class="notice warn">{warning}</p>
  const valueType = compared === 'text' ? 'number' : 'text'
  const changed = { ...condition, valueType } as const
  const conditions = filter.conditions.map((one, position) => (position === at ? changed : one))
  return (
    <p class="notice warn">
      <Quoted value={condition.field} /> is {compared === 'text' ? 'a number' : 'text'} in records that were
      read, but the filter compares it with {compared}.{' '}
      {!('fault' in valueOf(changed)) && (
        <Button text={`Compare as ${valueType}`} onClick={() => apply({ ...filter, conditions })} />
      )}
    </p>
  )
}

/** What the list shows if no record matches: why the search ended, and how to continue it. */
export function NoMatch(
  props: FilterProps & {
    order: RecordOrder
    /** Searches on; absent if all records were read. */
    searchFurther: (() => void) | undefined
  },
) {
  const { filter, apply, order, searchFurther } = props
  const [fromMs, toMs] = [msOfField(filter.from), msOfField(filter.to)]
  if (searchFurther !== undefined) {
    const [read, further] = order === 'desc' ? ['newest', 'older'] : ['oldest', 'newer']
    return (
      <Empty title="No matching records so far">
        The {read} records were read, and {further} ones follow.{' '}
        <Button text={`Search ${further} records`} onClick={searchFurther} />
      </Empty>
    )
  }
  if (fromMs === undefined && toMs === undefined)
    return <Empty title="No matching records">All records were read. Remove or change a condition.</Empty>
  return (
    <Empty title="No matching records">
      The range of time ended the search: it read no records{' '}
      {fromMs !== undefined && (
        <>
          before <Time ms={fromMs} />
        </>
      )}
      {fromMs !== undefined && toMs !== undefined && ' or '}
      {toMs !== undefined && (
        <>
          after <Time ms={toMs} />
        </>
      )}
      . <Button text="Search all times" onClick={() => apply({ ...filter, from: '', to: '' })} />
    </Empty>
  )
}
