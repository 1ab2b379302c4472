import { useState } from 'preact/hooks'
import type { AgentStatusResponse } from '../../../client/index.js'
import { ScopedButton } from '../texts.js'
import { may, type Scope, session } from '../session.js'
import { useFocusAfter } from '../confirm.js'
import { type ChangedRecord, ChangeDialog } from './change-dialog.js'
import type { RecordAction } from './change-words.js'

/** Deleting, restoring and erasing a record, where its zone and the key allow it; else why not. */
export function RecordChanges({ reload, ...about }: ChangedRecord & { reload: () => void }) {
  const [asking, setAsking] = useState<RecordAction | undefined>(undefined)
  const { place, changed } = useFocusAfter<HTMLHeadingElement>(reload)
  const { value } = session
  if (value.kind !== 'in') return null
  const { service, who } = value
  const { row, status } = about
  const shut = shutText(about)
  const actions: RecordAction[] = [row.state === 'deleted' ? 'restore' : 'delete', 'erase']
  return (
    <section aria-labelledby="changes-title">
      <h3 id="changes-title" ref={place} tabIndex={-1}>
        Change
      </h3>
      {shut !== undefined ? (
        <p class="muted">{shut}</p>
      ) : (
        <div class="buttons">
          {actions.map((action) => (
            <ScopedButton
              key={action}
              allowed={may(who, scopeOf(action))}
              scope={scopeOf(action)}
              onClick={() => setAsking(action)}
            >
              {buttonNames[action]}
            </ScopedButton>
          ))}
          <span class="muted">{zoneText[status.zone]}</span>
        </div>
      )}
      {asking !== undefined && (
        <ChangeDialog
          service={service}
          about={about}
          action={asking}
          close={(isChanged) => {
            setAsking(undefined)
            if (isChanged) changed()
          }}
        />
      )}
    </section>
  )
}

function scopeOf(action: RecordAction): Scope {
  return action === 'erase' ? 'records:erase' : 'records:delete'
}

const buttonNames: Record<RecordAction, string> = { delete: 'Delete', restore: 'Restore', erase: 'Erase' }

const zoneText: Record<AgentStatusResponse['zone'], string> = {
  free: 'At once, by the rule of zone free',
  governed: 'By a proposal, by the rule of zone governed',
  protected: 'By a proposal, by the rule of zone protected',
  immutable_core: '',
}

/** Why a record cannot be changed by anybody; undefined where it can. */
function shutText({ row: { type, state }, status: { zone } }: ChangedRecord): string | undefined {
  if (/^(sys|auth|edge)\//.test(type)) return 'Records of the server cannot be deleted or erased.'
  if (state === 'erased') return 'The body is gone for good, and nothing more can be done with the record.'
  return zone === 'immutable_core'
    ? 'The agent’s zone is immutable_core: no record of it is ever changed.'
    : undefined
}
