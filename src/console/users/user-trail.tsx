import { useState } from 'preact/hooks'
import type { ServiceClient, User } from '../../client/index.js'
import { cursorsType, useAddress } from '../parts/address.js'
import { auditQuery, type AuditRows, describeEvent, readAudit } from '../parts/audit-events.js'
import { AuditTable } from '../parts/audit-table.js'
import { explain } from '../parts/explain.js'
import { counted, countText, keyDigits } from '../parts/format.js'
import { Read, useLoaded, useTask } from '../parts/load.js'
import { CursorPages } from '../parts/card-table.js'
import { fails, FocusedResult, holds, type Verdict } from '../parts/result.js'
import { auditLink } from '../route.js'
import type { SignedIn } from '../parts/session.js'
import { Button } from '../parts/texts.js'
import { proveRecord } from '../parts/proof/prove-record.js'
import { readStrandPart, type RecordRow, rowOf } from '../parts/records/record-row.js'

const PAGE_RECORDS = 50

interface TrailProps {
  session: SignedIn
  /** The agent with the audit records. */
  agent: string
  user: User
  /** A new value reads the trail again. */
  revision: number
}

/** The audit records of a user, found by the HMAC of the e-mail, because failed sign-ins have no user id. */
export function UserTrail({ session, agent, user, revision }: TrailProps) {
  const { service } = session
  const [cursors, setCursors] = useAddress('page', cursorsType)
  const cursor = cursors.at(-1)
  const read = useLoaded<AuditRows>(`${agent} ${cursor ?? ''} ${revision}`, (signal) => {
    const span = { fromMs: undefined, toMs: undefined }
    const query = auditQuery(agent, { span, type: '', outcome: '', user: user.email_hmac })
    const page = cursor === undefined ? {} : { cursor }
    return readAudit(service, agent, { query: { ...query, ...page, limit: PAGE_RECORDS }, signal })
  })
  return (
    <section class="user-trail">
      <h2>Audit trail</h2>
      <p class="muted">
        All records of sign-ins and changes with this e-mail, newest first, including those of an earlier user
        with the same e-mail.
      </p>
      <Read of={read} what="the audit trail">
        {({ rows }) =>
          rows.length === 0 ? (
            <p class="notice">The strand of {agent} has no audit records of this user.</p>
          ) : (
            <>
              <VerifyThese key={`${cursor} ${revision}`} service={service} agent={agent} rows={rows} />
              <AuditTable
                session={session}
                agent={agent}
                name={`Audit records of ${user.email}`}
                rows={rows}
                linkTo={(seq) => auditLink(agent, seq)}
              />
            </>
          )
        }
      </Read>
      <CursorPages cursors={cursors} set={setCursors} next={read.loaded.value?.next} />
    </section>
  )
}

function VerifyThese(props: { service: ServiceClient; agent: string; rows: AuditRows['rows'] }) {
  const { service, agent, rows } = props
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined)
  const [done, setDone] = useState<number | undefined>(undefined)
  const { begin, stop } = useTask()
  const verify = async (): Promise<void> => {
    const signal = begin()
    setVerdict(undefined)
    setDone(0)
    try {
      setVerdict(await verifyRows({ service, agent, rows, signal, onProgress: setDone }))
    } catch (error) {
      if (!signal.aborted) setVerdict(fails(explain(error)))
    }
    setDone(undefined)
  }
  return (
    <>
      <div class="buttons">
        <button type="button" class="primary" disabled={done !== undefined} onClick={() => void verify()}>
          Verify these
        </button>
        {done !== undefined && (
          <>
            <span class="muted">
              {countText(done)} of {counted(rows.length, 'record')}
            </span>
            <Button text="Stop" class="quiet" onClick={stop} />
          </>
        )}
      </div>
      <FocusedResult verdict={verdict}>
        <p>
          This browser checked each hash, each signature, and the path of each record to a checkpoint signed
          with the agent’s key. To prove that no record is missing, check the whole strand.
        </p>
      </FocusedResult>
    </>
  )
}

/** The parameters of a verification. */
interface Verifying {
  service: ServiceClient
  agent: string
  rows: readonly RecordRow[]
  signal: AbortSignal
  onProgress: (done: number) => void
}

/**
 * Proves listed records one after another, and checks that each matches its row in the list.
 * @throws errors of the service; the signal's reason
 */
async function verifyRows({ service, agent, rows, signal, onProgress }: Verifying): Promise<Verdict> {
  const handle = service.agent(agent)
  const { strand } = await handle.status({ signal })
  let publicKey = ''
  let isKeyTrusted = true
  for (const [done, row] of rows.entries()) {
    const { seq } = row
    const not = (why: string): Verdict => fails(`record ${seq} of ${agent}: ${why}`)
    const {
      records: [record],
    } = await readStrandPart(service, agent, { fromSeq: seq, toSeq: seq, signal })
    if (record === undefined) return not('the server did not send it')
    // The current key signs the checkpoint, and can change during the loop.
    publicKey = (await handle.status({ signal })).public_key
    const fetchProof = (hash: string) => service.proof(agent, hash, { signal })
    const verdict = await proveRecord({ agent, seq, strand, record, fetchProof, publicKey }, () => undefined)
    if (verdict.outcome === 'failed') return verdict
    isKeyTrusted &&= verdict.outcome === 'verified'
    const signed = rowOf(record)
    if (signed === undefined || textOf(signed) !== textOf(row))
      return not('the record does not match its row in the list')
    onProgress(done + 1)
  }
  return holds(
    `each of the ${counted(rows.length, 'record')} listed is unchanged and on the strand of ${agent}, under ` +
      `the checkpoint signed with key …${keyDigits(publicKey)}`,
    isKeyTrusted,
  )
}

function textOf(row: RecordRow): string {
  return JSON.stringify([row.seq, row.type, row.ms, describeEvent(row)])
}
