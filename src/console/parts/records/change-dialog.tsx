import { useEffect, useState } from 'preact/hooks'
import {
  type AgentStatusResponse,
  type MutationResponse,
  type ServiceClient,
  ServiceError,
} from '../../../client/index.js'
import { webCryptoJobs } from '../../../client/webcrypto.js'
import { utf8 } from '../../../proof/hex.js'
import type { ReadRecord } from '../../../proof/record.js'
import { Confirm, WhatIsLeft } from '../confirm.js'
import { explain } from '../explain.js'
import { bytesText, countText, keyDigits, lineText } from '../format.js'
import { useLoaded } from '../load.js'
import { type Step, proveRecord } from '../proof/prove-record.js'
import { Steps } from '../proof/steps.js'
import { Result, type Verdict } from '../result.js'
import { Failure } from '../texts.js'
import { zoneRules } from '../words.js'
import { type RecordAction, actionWords, leftBy } from './change-words.js'
import { type RecordRow, readStrandPart } from './record-row.js'

/** A written record that can be changed, with the state of its agent. */
export interface ChangedRecord {
  status: AgentStatusResponse
  row: RecordRow
  record: ReadRecord
}

/** Asks before a record is changed, saying what will be left, and says what came of it. */
export function ChangeDialog(props: {
  service: ServiceClient
  about: ChangedRecord
  action: RecordAction
  /** @param isChanged whether the strand has grown */
  close: (isChanged: boolean) => void
}) {
  const { service, about, action, close } = props
  const { row, status, record } = about
  const { agent_id: agent, zone } = status
  const { title, button, done } = actionWords[action]
  // Computed here from the header, which is what the digits are to be compared with.
  const hashed = useLoaded(record.h, async () => webCryptoJobs().hash(utf8(`\0${record.h}`))).loaded
  const hash = hashed.value
  const what = 'the last 8 digits of the record’s hash'
  return (
    <Confirm
      change={{
        title: `${title} record ${row.seq}`,
        heading: `${title} record ${countText(row.seq)} of ${agent}`,
        button: zone === 'free' ? button : 'Propose it',
        stop: 'Leave it as it is',
        isDanger: action !== 'restore',
        isShut: hash === undefined,
        confirm: action === 'erase' && hash !== undefined ? { wanted: keyDigits(hash), what } : undefined,
        apply: () => changeRecord({ service, agent, hash: hash ?? '', action }),
        refused,
        told: ({ seq }) => (
          <>
            <p role="status">
              {done}, by the signed record {countText(seq)}.
            </p>
            {action === 'erase' && <ProvedAgain service={service} agent={agent} seq={row.seq} />}
          </>
        ),
        close,
      }}
    >
      {row.body !== undefined && (
        <p class="raw preview">
          <code>{lineText(row.body)}</code>
        </p>
      )}
      <WhatIsLeft left={leftBy(action, bodySize(row.body))} />
      <p class="notice">{zoneRules[zone]}</p>
      {hashed.kind === 'failed' && <Failure message={hashed.message} />}
    </Confirm>
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

function refused(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal about this record waits already. It is listed under Proposals'
  return explain(error)
}

/** Proves a record from what the server has of it now, as soon as it is shown. */
function ProvedAgain({ service, agent, seq }: { service: ServiceClient; agent: string; seq: number }) {
  const [steps, setSteps] = useState<readonly Step[]>([])
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const onStep = (step: Step): void => {
      if (!signal.aborted) setSteps((before) => [...before, step])
    }
    prove({ service, agent, seq, signal }, onStep).then(
      (found) => {
        if (!signal.aborted) setVerdict(found)
      },
      (error: unknown) => {
        if (!signal.aborted)
          setVerdict({ ok: false, text: `Not verified: record ${seq} of ${agent}: ${explain(error)}` })
      },
    )
    return () => controller.abort()
  }, [service, agent, seq])
  return (
    <>
      <p>Its proof without the body, computed again by this browser:</p>
      <Result verdict={verdict} />
      <Steps steps={steps} />
    </>
  )
}

async function prove(
  what: { service: ServiceClient; agent: string; seq: number; signal: AbortSignal },
  onStep: (step: Step) => void,
): Promise<Verdict> {
  const { service, agent, seq, signal } = what
  const { strand, public_key: publicKey } = await service.agent(agent).status({ signal })
  const { records } = await readStrandPart(service, agent, { fromSeq: seq, toSeq: seq, signal })
  const [record] = records
  if (record === undefined)
    return { ok: false, text: `Not verified: record ${seq} of ${agent}: the server does not send it` }
  const askForPath = (hash: string) => service.proof(agent, hash, { signal })
  return proveRecord({ agent, seq, strand, record, askForPath, publicKey }, onStep)
}
