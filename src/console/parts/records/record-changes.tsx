import { useEffect, useState } from 'preact/hooks'
import { type AgentStatusResponse, type ServiceClient, ServiceError } from '../../../client/index.js'
import { Failure, ScopedButton } from '../texts.js'
import { hasScope, type Scope, session } from '../session.js'
import { type ChangeConsequences, Confirm, ConsequenceList, useFocusAfter } from '../confirm.js'
import { webCryptoJobs } from '../../../client/webcrypto.js'
import { utf8 } from '../../../proof/hex.js'
import type { ReadRecord } from '../../../proof/record.js'
import { explain } from '../explain.js'
import { bytesText, countText, keyDigits, lineText } from '../format.js'
import { useLoaded } from '../load.js'
import { proveRecord, type Step } from '../proof/prove-record.js'
import { Steps } from '../proof/prove-button.js'
import { fails, Result, type Verdict } from '../result.js'
import { zoneRules } from '../labels.js'
import { readStrandPart, type RecordRow } from './record-row.js'

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
              text={buttonNames[action]}
              allowed={hasScope(who, scopeOf(action))}
              scope={scopeOf(action)}
              onClick={() => setConfirming(action)}
            />
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

/** The changes of a written record. */
export type RecordAction = 'delete' | 'restore' | 'erase'

/** The texts of each change: the title, the button, and the result. */
const actionWords: Record<RecordAction, { title: string; button: string; done: string }> = {
  delete: { title: 'Delete', button: 'Delete record', done: 'The record is deleted' },
  restore: { title: 'Restore', button: 'Restore record', done: 'The record is active again' },
  erase: { title: 'Erase', button: 'Erase permanently', done: 'The body is erased' },
}

/** The consequences of a change. @param bodyText the size of the body, as text */
function recordConsequences(action: RecordAction, bodyText: string): ChangeConsequences {
  if (action === 'erase') return ofErasing(bodyText)
  if (action === 'restore')
    return {
      removed: [],
      kept: ['The record appears in lists, in queries and in new streams again.'],
      notAffected: [],
    }
  return {
    removed: ['The record no longer appears in lists, in queries and in new streams.'],
    kept: [
      'The body, in the strand and in exports: it can still be read there, or by its hash.',
      'The record’s position, hash and signature. It can be restored.',
    ],
    notAffected: [],
  }
}

function ofErasing(bodyText: string): ChangeConsequences {
  return {
    removed: [
      `The body, ${bodyText}.`,
      'Its salt, so that a guess of the body cannot be confirmed.',
      'The copy in PostgreSQL, if the server writes one.',
    ],
    kept: [
      'Hash, signature, type, time and position in the chain: all proofs stay valid.',
      'A signed record that names who erased it.',
    ],
    notAffected: [
      'Existing backups and disk snapshots.',
      'Exports, and copies made by subscribers of streams.',
      'The SHA-256 of the request, for one day if it was written with an Idempotency-Key.',
    ],
  }
}

interface ChangedRecord {
  status: AgentStatusResponse
  row: RecordRow
  record: ReadRecord
}

/** A dialog that confirms the change of a record, after listing its consequences. */
function ChangeDialog(props: {
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
        apply: () => service.agent(agent)[methods[action]](hash ?? ''),
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

/** The method of an agent for each change. */
const methods = { delete: 'deleteRecord', restore: 'restore', erase: 'eraseRecord' } as const

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
