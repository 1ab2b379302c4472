import { Button, Empty, Quoted, Time } from '../../parts/texts.js'
import { msOfField } from '../../parts/format.js'
import type { RecordOrder } from '../../parts/records/record-row.js'
import { type FilterDraft, valueOf } from './filter.js'

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
