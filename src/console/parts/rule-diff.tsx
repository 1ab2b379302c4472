import type { ComponentChildren } from 'preact'
import type { Proposal, WhereCondition } from '../../client/index.js'
import { Quoted } from './texts.js'

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
  const more =
    conditions.length === 0 ? (
      'every record'
    ) : (
      <>
        records whose <Conditions all={conditions} />
      </>
    )
  const of = types === undefined ? '' : `, of ${typesText(types)}`
  return {
    text: actions.join(', '),
    more: (
      <>
        {more}
        {of}
      </>
    ),
  }
}

/** The types of records that a rule is about, in words. */
export function typesText(types: readonly string[] | undefined): string {
  return types === undefined ? 'records of applications' : `type ${types.join(' or ')}`
}

/** Comparisons, and how the form says them. */
export const operatorWords: Record<WhereCondition['op'], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  lt: 'is less than',
  lte: 'is at most',
  gt: 'is more than',
  gte: 'is at least',
  exists: 'is there',
}

/** Conditions in words. Fields and values stand in quotes, so that they cannot be read as anything else. */
export function Conditions({ all }: { all: Policy['conditions'] }) {
  return (
    <>
      {all.map(({ field, op, value }, at) => (
        // Conditions have no identity but their place.
        <span key={at}>
          {at > 0 && ' and '}
          <Quoted value={field} />{' '}
          {op === 'exists' && typeof value === 'boolean' ? (
            value ? (
              'is there'
            ) : (
              'is not there'
            )
          ) : (
            <>
              {operatorWords[op]} <Quoted value={value} />
            </>
          )}
        </span>
      ))}
    </>
  )
}

/** A line of a change: what goes, what comes, what stays. */
export interface DiffRow {
  sign: '−' | '+' | ' '
  text: string
  more: ComponentChildren
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
