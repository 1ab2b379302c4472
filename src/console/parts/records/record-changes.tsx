import { useState } from 'preact/hooks'
import type { AgentStatusResponse } from '../../../client/index.js'
import { ScopedButton } from '../texts.js'
import { hasScope, type Scope, session } from '../session.js'
import { useFocusAfter } from '../confirm.js'
import { type ChangedRecord, ChangeDialog } from './change-dialog.js'
import type { RecordAction } from './change-labels.js'

/** Buttons to delete, restore and erase a record, or the reason why it cannot be changed. */
export function RecordChanges({ reload, ...about }: ChangedRecord & { reload: () => void }) {
  const [confirming, setConfirming] = useState<RecordAction | undefined>(undefined)
  const { focusTarget, changed } = useFocusAfter<HTMLHeadingElement>(reload)
  const { value } = session
  if (value.kind !== 'in') return null
  const { service, who } = value
  const { row, status } = about
  const obstacle = obstacleText(about)
  const actions: RecordAction[] = [row.state === 'deleted' ? 'restore' : 'delete', 'erase']
  return (
    <section aria-labelledby="changes-title">
      <h3 id="changes-title" ref={focusTarget} tabIndex={-1}>
        Change
      </h3>
      {obstacle !== undefined ? (
        <p class="muted">{obstacle}</p>
      ) : (
        <div class="buttons">
          {actions.map((action) => (
            <ScopedButton
              key={action}
              allowed={hasScope(who, scopeOf(action))}
              scope={scopeOf(action)}
              onClick={() => setConfirming(action)}
            >
              {buttonNames[action]}
            </ScopedButton>
          ))}
          <span class="muted">{zoneText[status.zone]}</span>
        </div>
      )}
      {confirming !== undefined && (
        <ChangeDialog
          service={service}
          about={about}
          action={confirming}
          close={(isChanged) => {
            setConfirming(undefined)
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
  free: 'Takes effect immediately (zone free)',
  governed: 'Becomes a proposal (zone governed)',
  protected: 'Becomes a proposal (zone protected)',
  immutable_core: '',
}

/** The reason why no key can change the record; undefined if it can be changed. */
function obstacleText({ row: { type, state }, status: { zone } }: ChangedRecord): string | undefined {
  if (/^(sys|auth|edge)\//.test(type)) return 'Records of the server cannot be deleted or erased.'
  if (state === 'erased') return 'The body is permanently erased. The record cannot be changed any more.'
  return zone === 'immutable_core'
    ? 'The zone of the agent is immutable_core: its records can never be changed.'
    : undefined
}
