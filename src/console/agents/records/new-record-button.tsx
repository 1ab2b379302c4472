import { useState } from 'preact/hooks'
import { isReservedType } from '../../../strand/record-type.js'
import { lazy } from '../../parts/load.js'
import type { RecordRow } from '../../parts/records/record-row.js'
import { hasScope, type SignedIn } from '../../parts/session.js'
import { ScopedButton } from '../../parts/texts.js'
import type { RecordDraft } from './new-record.js'

const NewRecord = lazy(async () => (await import('./new-record.js')).NewRecord)

const emptyRecord: RecordDraft = { type: 'record', text: '{\n  \n}' }

/** A button that opens the form for a new record, and then the record. */
export function NewRecordButton(props: {
  session: SignedIn
  agent: string
  /** The records of the page, of which the form can copy the first. */
  rows: readonly RecordRow[]
  linkTo: (seq: number) => string
  reload: () => void
}) {
  const { session, agent, rows, linkTo, reload } = props
  const { service, who } = session
  const [isOpen, setOpen] = useState(false)
  const [draft, setDraft] = useState(emptyRecord)
  // Only the server writes to its strands.
  if (agent.startsWith('server::')) return null
  return (
    <>
      <ScopedButton
        class="primary"
        // The rules of the agent define what a user can write.
        allowed={who.kind === 'user' || hasScope(who, 'records:write')}
        scope="records:write"
        onClick={() => setOpen(true)}
      >
        New record
      </ScopedButton>
      {isOpen && (
        <NewRecord
          service={service}
          agent={agent}
          draft={draft}
          setDraft={setDraft}
          model={rows.find(({ type, body }) => body !== undefined && !isReservedType(type))}
          written={(seq) => {
            setOpen(false)
            setDraft(emptyRecord)
            reload()
            location.hash = linkTo(seq)
          }}
          close={() => setOpen(false)}
        />
      )}
    </>
  )
}
