import { useLayoutEffect, useState } from 'preact/hooks'
import { Field, Moment, Problem, TextInput, Select, sameLabels, Form } from '../../parts/field.js'
import { operatorWords } from '../../parts/rule-diff.js'
import { isUtc } from '../../parts/format.js'
import {
  type ConditionDraft,
  CONDITIONS_MAX,
  type FilterDraft,
  emptyCondition,
  noFilter,
  operatorOf,
  queryOf,
  valueTypes,
} from './filter.js'
import { Button } from '../../parts/texts.js'

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
  /** The id of a datalist with suggestions for the value. */
  values?: string
  set: (condition: ConditionDraft | undefined) => void
}

export function Condition(props: ConditionProps) {
  const { condition, values, set } = props
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
        options={operatorWords}
        set={(chosen) => set({ ...condition, op: operatorOf(chosen) ?? 'eq' })}
      />
      {op !== 'exists' && (
        <Select
          aria-label="Type of the value"
          value={valueType}
          options={sameLabels(valueTypes)}
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
