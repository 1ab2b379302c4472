import { useEffect, useState } from 'preact/hooks'
import { escapeUnseen } from '../../../auth/shown-text.js'
import { type Policy, policyWarnings } from '../../../auth/row-policy.js'
import type { AgentStatusResponse } from '../../../client/index.js'
import { useFocusAfter } from '../../parts/confirm.js'
import { Read, useLoaded } from '../../parts/load.js'
import { Empty } from '../../parts/texts.js'
import { type SignedIn, may } from '../../parts/session.js'
import { draftsOf, type EditedRules, faultsOf, textOfRules } from './draft.js'
import { RuleEditor } from './rule-editor.js'
import { SaveRules } from './save-rules.js'
import { TryRules } from './try-rules.js'

interface RulesProps {
  session: SignedIn
  status: AgentStatusResponse
  reload: () => void
}

/** What users' tokens may do with the records of an agent: rules to be changed, and to be tried before. */
export function RulesTab({ session, status, reload }: RulesProps) {
  const { service, who } = session
  const { agent_id: agent } = status
  const isAllowed = may(who, 'agents:admin')
  const read = useLoaded(agent, async (signal) =>
    isAllowed ? (await service.agent(agent).policies({ signal })).policies : undefined,
  )
  if (!isAllowed) {
    return (
      <Empty title="This key may not see the rules">
        They need a key with the scope <code>agents:admin</code>.
      </Empty>
    )
  }
  const saved = (): void => {
    read.reload()
    reload()
  }
  return (
    <Read of={read} what="the rules">
      {(policies = []) => <Rules session={session} status={status} saved={policies} reload={saved} />}
    </Read>
  )
}

function editedOf(policies: Policy[]): EditedRules {
  return { drafts: draftsOf(policies), text: textOfRules(policies), read: { policies }, by: 'rows' }
}

function Rules({ session, status, saved, reload }: RulesProps & { saved: Policy[] }) {
  const [edited, setEdited] = useState(() => editedOf(saved))
  const [isSaving, setSaving] = useState(false)
  const { place, changed } = useFocusAfter<HTMLParagraphElement>(reload)
  const savedText = textOfRules(saved)
  useEffect(() => setEdited(editedOf(saved)), [savedText])
  const policies = 'policies' in edited.read ? edited.read.policies : undefined
  const faults = policies === undefined ? [] : faultsOf(policies)
  const isChanged = policies === undefined || textOfRules(policies) !== savedText
  const usable = faults.length === 0 ? policies : undefined
  return (
    <div class="rules">
      <p class="lead" ref={place} tabIndex={-1}>
        Keys reach every record. A user’s token reaches the records that one of these rules allows, and
        without a rule nothing.
      </p>
      <RuleEditor edited={edited} set={setEdited} />
      <Remarks
        fault={'fault' in edited.read ? edited.read.fault : undefined}
        faults={faults}
        warnings={policies === undefined ? [] : policyWarnings(policies)}
      />
      <div class="buttons">
        <button
          type="button"
          class="primary"
          disabled={!isChanged || usable === undefined}
          onClick={() => setSaving(true)}
        >
          Save…
        </button>
        <button type="button" disabled={!isChanged} onClick={() => setEdited(editedOf(saved))}>
          Undo the changes
        </button>
        <span class="muted">{isChanged ? 'Not saved' : ''}</span>
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

/** What is wrong with the rules, and what they may not do as meant. */
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
          <p>The server accepts this, and warns:</p>
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
