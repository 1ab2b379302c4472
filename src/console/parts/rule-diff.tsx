import type { Proposal } from '../../client/index.js'
import { operatorWords } from './operators.js'

/** One rule for users. */
export type Policy = NonNullable<NonNullable<Proposal['change']>['policies']>[number]

/** The lines of a change of rules: any one of them suffices, so their order says nothing. */
export function policyRows(before: readonly Policy[] | undefined, after: readonly Policy[]): DiffRow[] {
  const had = new Set((before ?? after).map(keyOf))
  const has = new Set(after.map(keyOf))
  const gone = (before ?? []).filter((one) => !has.has(keyOf(one)))
  return [
    ...gone.map((policy) => ({ sign: '−' as const, ...policyText(policy) })),
    ...after.map((policy) => ({
      sign: had.has(keyOf(policy)) ? (' ' as const) : ('+' as const),
      ...policyText(policy),
    })),
  ]
}

function keyOf({ actions, conditions, types }: Policy): string {
  return JSON.stringify([actions, conditions.map(({ field, op, value }) => [field, op, value]), types])
}

function policyText({ actions, conditions, types }: Policy): Pick<DiffRow, 'text' | 'more'> {
  const parts = conditions.map(conditionText)
  const records = parts.length === 0 ? 'every record' : `records whose ${parts.join(' and ')}`
  return {
    text: actions.join(', '),
    more: types === undefined ? records : `${records}, of ${typesText(types)}`,
  }
}

/** The types of records that a rule is about, in words. */
export function typesText(types: readonly string[] | undefined): string {
  return types === undefined ? 'records of applications' : `type ${types.join(' or ')}`
}

/** A condition in words. */
export function conditionText({ field, op, value }: Policy['conditions'][number]): string {
  return op === 'exists' && typeof value === 'boolean'
    ? `${field} ${value ? 'is there' : 'is not there'}`
    : `${field} ${operatorWords[op]} ${JSON.stringify(value)}`
}

/** A line of a change: what goes, what comes, what stays. */
export interface DiffRow {
  sign: '−' | '+' | ' '
  text: string
  more: string
}

const diffWords: Record<DiffRow['sign'], { name: string; word: string }> = {
  '−': { name: 'gone', word: 'Goes' },
  '+': { name: 'new', word: 'Comes' },
  ' ': { name: 'same', word: 'Stays' },
}

/** The lines of a change. */
export function Diff({ rows }: { rows: readonly DiffRow[] }) {
  return (
    <ul class="diff">
      {rows.map(({ sign, text, more }, at) => (
        // The rows of a change stay in their places.
        <li key={at} class={diffWords[sign].name}>
          <span class="sign" aria-hidden="true">
            {sign}
          </span>
          <span class="hidden">{diffWords[sign].word}: </span>
          <span>
            <code>{text}</code> {more}
          </span>
        </li>
      ))}
    </ul>
  )
}
