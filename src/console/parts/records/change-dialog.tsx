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
import { Confirm, ConsequenceList } from '../confirm.js'
import { explain } from '../explain.js'
import { bytesText, countText, keyDigits, lineText } from '../format.js'
import { useLoaded } from '../load.js'
import { type Step, proveRecord } from '../proof/prove-record.js'
import { Steps } from '../proof/steps.js'
import { fails, Result, type Verdict } from '../result.js'
import { Failure } from '../texts.js'
import { zoneRules } from '../labels.js'
import { type RecordAction, actionWords, recordConsequences } from './change-labels.js'
import { type RecordRow, readStrandPart } from './record-row.js'

export interface ChangedRecord {
  status: AgentStatusResponse
  row: RecordRow
  record: ReadRecord
}

/** A dialog that confirms the change of a record, after listing its consequences. */
export function ChangeDialog(props: {
  service: ServiceClient
  about: ChangedRecord
  action: RecordAction
  /** @param isChanged whether the change added records to the strand */
  close: (isChanged: boolean) => void
}) {
  const { service, about, action, close } = props
  const { row, status, record } = about
  const { agent_id: agent, zone } = status
  const { title, button, done } = actionWords[action]
  // Computed here from the header, so that the typed digits confirm what this browser has seen.
  const hashed = useLoaded(record.h, async () => webCryptoJobs().hash(utf8(`\0${record.h}`))).loaded
  const hash = hashed.value
  const what = 'the last 8 digits of the record’s hash'
  return (
    <Confirm
      change={{
        title: `${title} record ${row.seq}`,
        heading: `${title} record ${countText(row.seq)} of ${agent}`,
        button: zone === 'free' ? button : 'Propose change',
        isDanger: action !== 'restore',
        isDisabled: hash === undefined,
        confirm: action === 'erase' && hash !== undefined ? { wanted: keyDigits(hash), what } : undefined,
        apply: () => changeRecord({ service, agent, hash: hash ?? '', action }),
        explainError,
        describeResult: ({ seq }) => (
          <>
            <p role="status">
              {done}, by the signed record {countText(seq)}.
            </p>
            {action === 'erase' && <ProofAfterErasure service={service} agent={agent} seq={row.seq} />}
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
      <ConsequenceList consequences={recordConsequences(action, bodySize(row.body))} />
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

function explainError(error: unknown): string {
  if (error instanceof ServiceError && error.code === 'proposal_open')
    return 'A proposal about this record is already pending. It is listed under Proposals'
  return explain(error)
}

/** Proves an erased record when it is first shown. */
function ProofAfterErasure({ service, agent, seq }: { service: ServiceClient; agent: string; seq: number }) {
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
        if (!signal.aborted) setVerdict(fails(`record ${seq} of ${agent}: ${explain(error)}`))
      },
    )
    return () => controller.abort()
  }, [service, agent, seq])
  return (
    <>
      <p>The proof of the record without its body, computed by this browser:</p>
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
  if (record === undefined) return fails(`record ${seq} of ${agent}: the server did not send it`)
  const fetchProof = (hash: string) => service.proof(agent, hash, { signal })
  return proveRecord({ agent, seq, strand, record, fetchProof, publicKey }, onStep)
}
