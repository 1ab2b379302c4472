import { effect } from '@preact/signals'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { escapeUnseen } from '../../../auth/shown-text.js'
import { type Policy, policyWarnings } from '../../../auth/row-policy.js'
import {
  type AgentStatusResponse,
  type PoliciesReplaced,
  type PoliciesShown,
  type ServiceClient,
  ServiceError,
} from '../../../client/index.js'
import { Confirm, useFocusAfter } from '../../parts/confirm.js'
import { Read, useLoaded } from '../../parts/load.js'
import { Countdown, useReloadWhenDue } from '../../parts/now.js'
import { Button, Empty, Time } from '../../parts/texts.js'
import { hasScope, session as current, type SignedIn } from '../../parts/session.js'
import { draftsOf, type EditedRules, faultsOf, textOfRules } from './draft.js'
import { RuleEditor } from './rule-editor.js'
import { TryRules } from './try-rules.js'
import { agentLink, proposalLink } from '../../route.js'
import { explain } from '../../parts/explain.js'
import { countText } from '../../parts/format.js'
import { Diff, policyRows } from '../../parts/rule-diff.js'
import { zoneRules } from './labels.js'

interface RulesProps {
  session: SignedIn
  status: AgentStatusResponse
  reload: () => void
}

/** The rules for users of an agent: edit, try and save them. */
export function RulesTab({ session, status, reload }: RulesProps) {
  const { service, who } = session
  const { agent_id: agent } = status
  const isAllowed = hasScope(who, 'agents:admin')
  const read = useLoaded(agent, async (signal) =>
    isAllowed ? service.agent(agent).policies({ signal }) : undefined,
  )
  const reloadAll = (): void => {
    read.reload()
    reload()
  }
  const { value } = read.loaded
  const dueAtMs = value?.pending?.effective_at_ms ?? undefined
  useReloadWhenDue(value, dueAtMs === undefined ? [] : [dueAtMs], reloadAll)
  if (!isAllowed) {
    return (
      <Empty title="This key cannot read the rules">
        Sign in with a key that has the scope <code>agents:admin</code>.
      </Empty>
    )
  }
  return (
    <Read of={read} what="the rules">
      {(shown) =>
        shown !== undefined && <Rules session={session} status={status} shown={shown} reload={reloadAll} />
      }
    </Read>
  )
}

function editedOf(policies: Policy[]): EditedRules {
  return { drafts: draftsOf(policies), text: textOfRules(policies), read: { policies }, by: 'rows' }
}

/**
 * The unsaved rules by agent. They survive a change of the screen and a sign-out, which can be that of another
 * tab, but not the sign-in of another key or user.
 */
const unsaved = new Map<string, EditedRules>()
let author: string | undefined

effect(() => {
  if (current.value.kind !== 'in') return
  const { principal } = current.value.who
  if (author !== principal) unsaved.clear()
  author = principal
})
addEventListener('beforeunload', (event) => {
  if (unsaved.size > 0) event.preventDefault()
})

function Rules({ session, status, shown, reload }: RulesProps & { shown: PoliciesShown }) {
  const { policies: saved, pending } = shown
  const { agent_id: agent } = status
  const [edited, setEdited] = useState(() => unsaved.get(agent) ?? editedOf(saved))
  const [isSaving, setSaving] = useState(false)
  const { focusTarget, changed } = useFocusAfter<HTMLParagraphElement>(reload)
  const savedText = textOfRules(saved)
  const policies = 'policies' in edited.read ? edited.read.policies : undefined
  const faults = policies === undefined ? [] : faultsOf(policies)
  const editedText = policies && textOfRules(policies)
  const isChanged = editedText !== savedText
  const usable = faults.length === 0 ? policies : undefined
  const isProposed = pending !== null && editedText === textOfRules(pending.policies)
  const lastSavedText = useRef(savedText)
  useLayoutEffect(() => {
    // Changes that are not saved stay when other rules are saved.
    if ([savedText, lastSavedText.current].includes(editedText ?? '')) setEdited(editedOf(saved))
    lastSavedText.current = savedText
  }, [savedText])
  useLayoutEffect(() => {
    if (isChanged && !isProposed) unsaved.set(agent, edited)
    else unsaved.delete(agent)
  }, [agent, edited, isChanged, isProposed])
  return (
    <div class="rules">
      <p class="lead" ref={focusTarget} tabIndex={-1}>
        Keys can access every record. A user’s token can access the records that at least one of these rules
        allows; without rules, it can access none.
      </p>
      {pending !== null && <PendingRules pending={pending} />}
      <RuleEditor edited={edited} set={setEdited} />
      <Remarks
        fault={'fault' in edited.read ? edited.read.fault : undefined}
        faults={faults}
        warnings={policies === undefined ? [] : policyWarnings(policies)}
      />
      <div class="buttons">
        <Button
          text="Save…"
          class="primary"
          disabled={!isChanged || usable === undefined || pending !== null}
          onClick={() => setSaving(true)}
        />
        <Button text="Discard changes" disabled={!isChanged} onClick={() => setEdited(editedOf(saved))} />
        <span class="muted">{isProposed ? 'Proposed' : isChanged ? 'Unsaved changes' : ''}</span>
      </div>
      <TryRules session={session} status={status} saved={saved} edited={isChanged ? usable : saved} />
      {isSaving && usable !== undefined && (
        <SaveRules
          service={session.service}
          status={status}
          saved={saved}
          policies={usable}
          close={(isSent) => {
            setSaving(false)
            if (isSent) changed()
          }}
        />
      )}
    </div>
  )
}

function Remarks(props: {
  fault: string | undefined
  faults: readonly string[]
  warnings: readonly string[]
}) {
  const { fault, faults, warnings } = props
  const problems = fault === undefined ? faults : [fault]
  return (
    <>
      <div role="alert">
        {problems.map((problem) => (
          <p key={problem} class="problem">
            {escapeUnseen(problem)}
          </p>
        ))}
      </div>
      {warnings.length > 0 && (
        <div class="notice">
          <p>The server accepts these rules with warnings:</p>
          <ul>
            {warnings.map((warning) => (
              <li key={warning}>{escapeUnseen(warning)}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  )
}

/** Says that proposed rules are not in force yet, and when they will be. */
function PendingRules({ pending }: { pending: NonNullable<PoliciesShown['pending']> }) {
  const { proposal_id: id, effective_at_ms: atMs } = pending
  return (
    <p class="notice warn">
      <strong>New rules are proposed and not in force yet.</strong>{' '}
      {atMs === null ? (
        'They take effect when another key approves them.'
      ) : (
        <>
          They take effect at <Time ms={atMs} />, unless they are rejected before:{' '}
          <Countdown untilMs={atMs} />. Users whom they allow more get the error <code>policy_pending</code>{' '}
          until then.
        </>
      )}{' '}
      <a href={proposalLink(id)}>Open the proposal</a>
    </p>
  )
}

/** A dialog that confirms the replacement of the rules, after showing the diff and when it takes effect. */
function SaveRules(props: {
  service: ServiceClient
  status: AgentStatusResponse
  saved: Policy[]
  policies: Policy[]
  /** @param isSent whether the server accepted the rules, directly or as a proposal */
  close: (isSent: boolean) => void
}) {
  const { service, status, saved, policies, close } = props
  const { agent_id: agent, zone } = status
  const handle = service.agent(agent)
  return (
    <Confirm<PoliciesReplaced>
      change={{
        title: 'Save rules',
        heading: `Save the rules of ${agent}`,
        button: zone === 'free' ? 'Save rules' : 'Propose rules',
        stop: 'Keep editing',
        async apply() {
          // Another user may have changed the rules since they were read.
          const { policies: current } = await handle.policies()
          if (textOfRules(current) !== textOfRules(saved)) throw new Error(changedText)
          return handle.setPolicies(policies)
        },
        explainError,
        describeResult: ({ seq }) => (
          <p role="status">
            The rules are in effect. See the signed{' '}
            <a href={agentLink(agent, seq)}>record {countText(seq)}</a>.
          </p>
        ),
        close,
      }}
    >
      <Diff rows={policyRows(saved, policies)} />
      {policies.length === 0 && (
        <p class="notice bad">Without rules, users can no longer access this agent.</p>
      )}
      <p class="notice">
        {zoneRules[zone]} Open streams of users on this agent then end; the new rules apply when clients
        reconnect. The previous rules stay in the strand as a signed record.
      </p>
    </Confirm>
  )
}

const changedText =
  'The rules were changed after this page loaded them. Copy your rules, then reload the page'

function explainError(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal to replace the rules of this agent is already pending. It is listed under Proposals'
  return explain(error)
}
