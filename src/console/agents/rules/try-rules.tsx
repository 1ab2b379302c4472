import { effect, signal } from '@preact/signals'
import { type Policy, type PolicyAction, policyActions } from '../../../auth/row-policy.js'
import type { AgentStatusResponse } from '../../../client/index.js'
import { type AddressType, choiceType, switchType, useAddress } from '../../parts/address.js'
import { counted, countText, lineText } from '../../parts/format.js'
import { ProgressLine } from '../../parts/result.js'
import { Button, Failure, Quoted } from '../../parts/texts.js'
import { hasScope, session as current, type SignedIn } from '../../parts/session.js'
import { readClaims } from './claims.js'
import { type Judged, useJudged, useLastRecords } from './judged.js'
import { UserChoice } from './user-choice.js'
import { refusedWords } from './labels.js'
import { quotedText } from '../../../auth/shown-text.js'
import { fieldOf } from '../../../strand/field-path.js'
import { CardTable } from '../../parts/card-table.js'
import { Tick } from '../../parts/field.js'
import { Conditions, typesText } from '../../parts/rule-diff.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { agentLink } from '../../route.js'
import type { Judgement, Reason } from './judge.js'

const actionType = choiceType<PolicyAction>(['read', ...policyActions])

const userIdType: AddressType<string> = {
  read: ([text = '']) => (/^usr_[0-9a-f]{32}$/.test(text) ? text : ''),
  write: (id) => (id === '' ? [] : [id]),
  isStep: false,
}

/** The claims as text, until the sign-out. No address has them, because they can be about a person. */
const claimsText = signal('')

effect(() => {
  if (current.value.kind !== 'in') setText('')
})

function setText(text: string): void {
  claimsText.value = text
}

interface TryProps {
  session: SignedIn
  status: AgentStatusResponse
  saved: Policy[]
  /** Undefined if they have faults; identical to `saved` if nothing is changed. */
  edited: Policy[] | undefined
}

/** Tries the saved and the edited rules for a user on the last records, with the server's own functions. */
export function TryRules({ session, status, saved, edited }: TryProps) {
  const text = claimsText.value
  const [action, setAction] = useAddress('action', actionType)
  const read = text.trim() === '' ? undefined : readClaims(text)
  const claims = read !== undefined && 'claims' in read ? read.claims : undefined
  const records = useLastRecords(session.service, status)
  const { rows } = records
  const judged = useJudged({ rows, saved, edited, request: claims && { action, claims } })
  const mayRead = hasScope(session.who, 'records:read')
  const cancel = (): void => {
    records.cancel()
    judged.cancel()
  }
  return (
    <section class="try" aria-labelledby="try-title">
      <h2 id="try-title">Try</h2>
      <p class="muted">
        Shows the effect of the rules, computed in this browser with the server’s own functions. Nothing is
        saved, and no token is issued. A page cannot prove that a server follows its rules.
      </p>
      <Who
        session={session}
        agent={status.agent_id}
        fault={read !== undefined && 'fault' in read ? read.fault : undefined}
      />
      <ActionChoice action={action} set={setAction} />
      <div class="buttons">
        <Button
          text={rows === undefined ? 'Try on the last 200 records' : 'Read the last 200 records again'}
          class="primary"
          disabled={!mayRead || records.progress !== undefined}
          onClick={() => void records.read()}
        />
        {!mayRead && (
          <small>
            needs <code>records:read</code>
          </small>
        )}
        {(records.progress !== undefined || judged.done !== undefined) && (
          <Button text="Cancel" onClick={cancel} />
        )}
      </div>
      <Progress records={records} judged={judged} />
      <p role="status" class="try-summary">
        {rows !== undefined && summaryText({ judged: judged.judged, action, saved, edited })}
      </p>
      {judged.judged !== undefined && (
        <JudgedTable
          agent={status.agent_id}
          judged={judged.judged}
          action={action}
          saved={saved}
          edited={edited}
        />
      )}
    </section>
  )
}

/** The claims: those of a chosen user, or as typed. */
function Who({ session, agent, fault }: { session: SignedIn; agent: string; fault: string | undefined }) {
  const [userId, setUserId] = useAddress('user', userIdType)
  return (
    <div class="try-who">
      <UserChoice
        session={session}
        agent={agent}
        userId={userId}
        setUserId={setUserId}
        choose={(chosen) => setText(JSON.stringify(chosen, null, 2))}
      />
      <ClaimsField
        text={claimsText.value}
        fault={fault}
        set={(typed) => {
          setText(typed)
          setUserId('')
        }}
      />
    </div>
  )
}

function ActionChoice({ action, set }: { action: PolicyAction; set: (action: PolicyAction) => void }) {
  return (
    <fieldset class="try-action">
      <legend>Action</legend>
      {policyActions.map((one) => (
        <label key={one} class="choice">
          <input type="radio" name="action" checked={action === one} onChange={() => set(one)} />
          {actionNames[one]}
        </label>
      ))}
    </fieldset>
  )
}

function ClaimsField(props: { text: string; fault: string | undefined; set: (text: string) => void }) {
  const { text, fault, set } = props
  return (
    <div class="field">
      <label for="try-claims">Claims of the token</label>
      <textarea
        id="try-claims"
        rows={8}
        spellcheck={false}
        placeholder={'{ "sub": "usr_…", "email": "ada@example.com", "app_metadata": { "team": "blue" } }'}
        value={text}
        aria-invalid={fault !== undefined}
        aria-describedby="try-claims-note"
        onInput={(event) => set(event.currentTarget.value)}
      />
      <p id="try-claims-note" class={fault === undefined ? 'muted' : 'problem'}>
        {fault ?? 'Choose a user, or enter claims. Edit them to see the effect.'}
      </p>
    </div>
  )
}

const actionNames: Record<PolicyAction, string> = {
  read: 'Read',
  write: 'Write',
  delete: 'Delete and restore',
  erase: 'Erase',
}

/** The progress of reading and evaluating, and errors. */
function Progress(props: {
  records: ReturnType<typeof useLastRecords>
  judged: ReturnType<typeof useJudged>
}) {
  const { records, judged } = props
  return (
    <>
      {records.progress !== undefined && <Counted name="Records read" {...records.progress} />}
      {judged.done !== undefined && (
        <Counted name="Records evaluated" done={judged.done} of={records.rows?.length ?? 0} />
      )}
      {records.problem !== undefined && <Failure message={records.problem} />}
      {judged.problem !== undefined && <Failure message={judged.problem} retry={judged.again} />}
    </>
  )
}

function Counted(props: { name: string; done: number; of: number }) {
  const { name, done, of } = props
  return (
    <ProgressLine {...props}>
      {name}: {countText(done)} of {countText(of)}
    </ProgressLine>
  )
}

function summaryText(about: {
  judged: Judged[] | undefined
  action: PolicyAction
  saved: Policy[]
  edited: Policy[] | undefined
}): string {
  const { judged, action, saved, edited } = about
  if (judged === undefined) return 'Choose a user, or enter claims, to see what the rules allow.'
  const allowed = (which: 'saved' | 'edited'): string => {
    const count = judged.filter((one) => one[which]?.allowed === true).length
    return `${countText(count)} of ${counted(judged.length, 'record')} allowed`
  }
  const parts = [`Saved rules: ${allowed('saved')}, the others ${refusedWords[action]}.`]
  if (edited === undefined) parts.push('The edited rules have errors and cannot be tried.')
  else if (edited !== saved) {
    const differ = judged.filter((one) => one.saved?.allowed !== one.edited?.allowed).length
    parts.push(`Edited rules: ${allowed('edited')}; ${counted(differ, 'record')} changed.`)
  }
  if (!saved.some(({ actions }) => actions.includes(action)))
    parts.push(`No saved rule covers ${action}: the server returns 403.`)
  return parts.join(' ')
}

const VALUE_CHARACTERS = 60

/** Records with the judgement of the rules for each, and the reasons. */
function JudgedTable(props: {
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
        <Tick isOn={isNarrowed} set={setNarrowed}>
          Only records with another result under the edited rules
        </Tick>
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
