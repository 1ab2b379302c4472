import type { Policy, PolicyAction } from '../../../auth/row-policy.js'
import { quotedText } from '../../../auth/shown-text.js'
import { fieldOf } from '../../../strand/field-path.js'
import { switchType, useAddress } from '../../parts/address.js'
import { CardTable } from '../../parts/card-table.js'
import { countText, lineText } from '../../parts/format.js'
import { Conditions, typesText } from '../../parts/rule-diff.js'
import { Quoted } from '../../parts/texts.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { agentLink } from '../../route.js'
import type { Judgement, Reason } from './judge.js'
import type { Judged } from './judged.js'
import { refusedWords } from './labels.js'

const VALUE_CHARACTERS = 60

/** Records with the judgement of the rules for each, and the reasons. */
export function JudgedTable(props: {
  agent: string
  judged: readonly Judged[]
  action: PolicyAction
  saved: Policy[]
  edited: Policy[] | undefined
}) {
  const { agent, judged, action, saved, edited } = props
  const [isNarrowed, setNarrowed] = useAddress('changed', switchType)
  const hasEdited = edited !== undefined && edited !== saved
  const differ = judged.filter((one) => one.saved?.allowed !== one.edited?.allowed)
  const shown = hasEdited && isNarrowed ? differ : judged
  return (
    <>
      {hasEdited && (
        <label class="choice">
          <input
            type="checkbox"
            checked={isNarrowed}
            onChange={(event) => setNarrowed(event.currentTarget.checked)}
          />
          Only records with another result under the edited rules
        </label>
      )}
      <CardTable
        name="Tried records"
        class="judged"
        rows={shown}
        keyOf={({ row }) => row.seq}
        head={['Record', ({ row: { seq } }) => <a href={agentLink(agent, seq)}>{countText(seq)}</a>]}
        cells={{
          'Saved rules': ({ row, saved: before }) =>
            before && <JudgementText judgement={before} rules={saved} row={row} action={action} />,
          ...(hasEdited && {
            'Edited rules': ({ row, saved: before, edited: after }: Judged) =>
              after && (
                <JudgementText
                  judgement={after}
                  rules={edited}
                  row={row}
                  action={action}
                  isChanged={before?.allowed !== after.allowed}
                />
              ),
          }),
          Type: ({ row: { type, state } }) => (
            <>
              <code>{type}</code> {state !== 'active' && <span class={`badge ${state}`}>{state}</span>}
            </>
          ),
          Body: ({ row: { body } }) => <code>{body === undefined ? '' : lineText(body)}</code>,
        }}
      />
    </>
  )
}

function JudgementText(props: {
  judgement: Judgement
  rules: Policy[]
  row: RecordRow
  action: PolicyAction
  isChanged?: boolean
}) {
  const { judgement, rules, row, action, isChanged } = props
  const { allowed, reasons, more } = judgement
  return (
    <span class="judgement">
      <span>
        <strong class={allowed ? 'allowed' : 'not-allowed'}>
          {allowed ? 'allowed' : refusedWords[action]}
        </strong>{' '}
        {isChanged === true && <span class="badge">changed</span>}
      </span>
      {reasons.map((reason) => (
        <span key={reason.rule} class="muted">
          <ReasonText reason={reason} rules={rules} row={row} />
        </span>
      ))}
      {more > 0 && <span class="muted">and {more} more</span>}
      {!allowed && reasons.length === 0 && <span class="muted">no rule covers {action}</span>}
    </span>
  )
}

function ReasonText({ reason, rules, row }: { reason: Reason; rules: readonly Policy[]; row: RecordRow }) {
  const { conditions = [], types } = rules[reason.rule] ?? {}
  const name = `rule ${reason.rule + 1}`
  if (reason.kind === 'allows') {
    return (
      <>
        {name}: {conditions.length === 0 ? 'every record' : <Conditions all={conditions} />}
      </>
    )
  }
  if (reason.kind === 'types') {
    return (
      <>
        {name} covers {typesText(types)}, not {row.type}
      </>
    )
  }
  const condition = conditions[reason.condition]
  if (condition === undefined) return <>{name}</>
  if (reason.kind === 'lacks') {
    return (
      <>
        {name}: the token has no <Quoted value={condition.value} />
      </>
    )
  }
  return (
    <>
      {name} requires: <Conditions all={[condition]} />; the value is{' '}
      <bdi>{valueText(fieldOf(row.members, condition.field))}</bdi>
    </>
  )
}

/** A short text for a value of any size. */
function valueText(value: unknown): string {
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return quotedText(typeof value === 'string' ? value.slice(0, VALUE_CHARACTERS) : value)
}
