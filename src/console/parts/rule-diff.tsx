import type { ComponentChildren } from 'preact'
import type { ProposalView, WhereCondition } from '../../client/index.js'
import { Quoted } from './texts.js'

export type Policy = NonNullable<NonNullable<ProposalView['change']>['policies']>[number]

/** The diff of two sets of rules. One matching rule is enough, so their order does not matter. */
export function policyRows(before: readonly Policy[] | undefined, after: readonly Policy[]): DiffRow[] {
  const had = new Set((before ?? after).map(keyOf))
  const has = new Set(after.map(keyOf))
  const removed = (before ?? []).filter((one) => !has.has(keyOf(one)))
  return [
    ...removed.map((policy) => ({ sign: '−' as const, ...policyText(policy) })),
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

export function typesText(types: readonly string[] | undefined): string {
  return types === undefined ? 'application records' : `type ${types.join(' or ')}`
}

/** The operators of conditions, as the forms show them. */
export const operatorWords: Record<WhereCondition['op'], string> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  lt: 'is less than',
  lte: 'is at most',
  gt: 'is more than',
  gte: 'is at least',
  exists: 'exists',
  contains: 'contains',
  starts_with: 'begins with',
}

/** Conditions as text. Fields and values are quoted, so that they cannot be mistaken for other text. */
export function Conditions({ all }: { all: Policy['conditions'] }) {
  return (
    <>
      {all.map(({ field, op, value }, at) => (
        // Conditions have no identity but their position.
        <span key={at}>
          {at > 0 && ' and '}
          <Quoted value={field} />{' '}
          {op === 'exists' && typeof value === 'boolean' ? (
            value ? (
              'exists'
            ) : (
              'does not exist'
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

/** A line of a diff: removed, added or unchanged. */
interface DiffRow {
  sign: '−' | '+' | ' '
  text: string
  more: ComponentChildren
}

const diffWords: Record<DiffRow['sign'], { name: string; word: string }> = {
  '−': { name: 'removed', word: 'Removed' },
  '+': { name: 'new', word: 'Added' },
  ' ': { name: 'same', word: 'Unchanged' },
}

export function Diff({ rows }: { rows: readonly DiffRow[] }) {
  return (
    <ul class="diff">
      {rows.map(({ sign, text, more }, at) => (
        // The rows of a diff keep their positions.
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
