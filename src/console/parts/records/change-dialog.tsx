import { useState } from 'preact/hooks'
import { type MutationResponse, type ServiceClient, ServiceError } from '../../../client/index.js'
import { webCryptoJobs } from '../../../client/webcrypto.js'
import { utf8 } from '../../../proof/hex.js'
import { Dialog, Done } from '../dialog.js'
import { explain } from '../explain.js'
import { bytesText, countText, keyDigits, lineText } from '../format.js'
import { useLoaded } from '../load.js'
import { Failure } from '../texts.js'
import { TypedConfirmation } from '../typed.js'
import { Waits } from '../waits.js'
import { WhatIsLeft } from '../what-is-left.js'
import { zoneRules } from '../words.js'
import type { ChangedRecord } from './changed-record.js'
import { ProvedAgain } from './proved-again.js'
import { type RecordAction, actionWords, leftBy } from './change-words.js'

interface ChangeProps {
  service: ServiceClient
  about: ChangedRecord
  action: RecordAction
  /** @param isChanged whether the strand has grown */
  close: (isChanged: boolean) => void
}

/** Asks before a record is changed, saying what will be left, and says what came of it. */
export function ChangeDialog(props: ChangeProps) {
  const { about, action, close } = props
  const [outcome, setOutcome] = useState<MutationResponse | undefined>(undefined)
  const { title } = actionWords[action]
  const name = `${title} record ${about.row.seq}`
  return (
    <Dialog title={name} class="dialog" close={() => close(outcome !== undefined)}>
      <h2>
        {title} record {countText(about.row.seq)} of {about.status.agent_id}
      </h2>
      {outcome === undefined ? (
        <Question {...props} done={setOutcome} />
      ) : (
        <>
          <Outcome {...props} outcome={outcome} />
          <Done close={() => close(true)} />
        </>
      )}
    </Dialog>
  )
}

function Question(props: ChangeProps & { done: (outcome: MutationResponse) => void }) {
  const { service, about, action, close, done } = props
  const { row, status } = about
  // Computed here from the header, which is what the digits are to be compared with.
  const hashed = useLoaded(about.record.h, async () =>
    webCryptoJobs().hash(utf8(`\0${about.record.h}`)),
  ).loaded
  const hash = hashed.value
  const [typed, setTyped] = useState('')
  const [problem, setProblem] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const isErasing = action === 'erase'
  const isConfirmed = !isErasing || (hash !== undefined && typed.trim() === keyDigits(hash))
  const change = async (): Promise<void> => {
    if (hash === undefined) return
    setBusy(true)
    try {
      done(await changeRecord({ service, agent: status.agent_id, hash, action }))
    } catch (error) {
      setProblem(problemText(error))
      setBusy(false)
    }
  }
  return (
    <>
      {row.body !== undefined && (
        <p class="raw preview">
          <code>{lineText(row.body)}</code>
        </p>
      )}
      <WhatIsLeft left={leftBy(action, bodySize(row.body))} />
      <p class="notice">{zoneRules[status.zone]}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void change()
        }}
      >
        {isErasing && hash !== undefined && (
          <TypedConfirmation
            wanted={keyDigits(hash)}
            what="the last 8 digits of the record’s hash"
            typed={typed}
            set={setTyped}
          />
        )}
        {hashed.kind === 'failed' && <Failure message={hashed.message} />}
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button
            type="submit"
            class={action === 'restore' ? 'primary' : 'danger'}
            disabled={isBusy || hash === undefined || !isConfirmed}
          >
            {status.zone === 'free' ? actionWords[action].button : 'Propose it'}
          </button>
          <button type="button" onClick={() => close(false)}>
            Leave it as it is
          </button>
        </div>
      </form>
    </>
  )
}

function bodySize(body: string | undefined): string {
  return body === undefined ? 'which is not shown here' : bytesText(utf8(body).length)
}

function changeRecord(what: {
  service: ServiceClient
  agent: string
  hash: string
  action: RecordAction
}): Promise<MutationResponse> {
  const { service, hash, action } = what
  const agent = service.agent(what.agent)
  switch (action) {
    case 'delete':
      return agent.deleteRecord(hash)
    case 'restore':
      return agent.restore(hash)
    case 'erase':
      return agent.eraseRecord(hash)
  }
}

function problemText(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal about this record waits already. It is listed under Proposals'
  return explain(error)
}

function Outcome({ service, about, action, outcome }: ChangeProps & { outcome: MutationResponse }) {
  if ('proposal_id' in outcome) return <Waits proposed={outcome} />
  return (
    <>
      <p role="status">
        {actionWords[action].done}, by the signed record {countText(outcome.seq)}.
      </p>
      {action === 'erase' && (
        <ProvedAgain service={service} agent={about.status.agent_id} seq={about.row.seq} />
      )}
    </>
  )
}
