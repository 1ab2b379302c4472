import { useState } from 'preact/hooks'
import type { ServiceClient, User } from '../../client/index.js'
import { type AuditRows, auditQuery, readAudit } from '../parts/audit-events.js'
import { AuditTable } from '../parts/audit-table.js'
import { explain } from '../parts/explain.js'
import { countText, counted } from '../parts/format.js'
import { Read, useLoaded, useTask } from '../parts/load.js'
import { CursorPages } from '../parts/pages.js'
import { Result, type Verdict } from '../parts/result.js'
import { auditLink } from '../route.js'
import { verifyRows } from './verify-rows.js'

const PAGE_RECORDS = 50

interface TrailProps {
  service: ServiceClient
  /** Whose strand has the audit records. */
  agent: string
  user: User
  /** Another number reads the trail again. */
  turn: number
}

/** Every audit record of a user, found by the HMAC of the e-mail: failed sign-ins name nothing else. */
export function UserTrail({ service, agent, user, turn }: TrailProps) {
  const [cursors, setCursors] = useState<string[]>([])
  const cursor = cursors.at(-1)
  const read = useLoaded<AuditRows>(`${agent} ${cursor ?? ''} ${turn}`, (signal) => {
    const span = { fromMs: undefined, toMs: undefined }
    const query = auditQuery(agent, { span, type: '', outcome: '', user: user.email_hmac })
    const place = cursor === undefined ? {} : { cursor }
    return readAudit(service, agent, { query: { ...query, ...place, limit: PAGE_RECORDS }, signal })
  })
  return (
    <section class="user-trail">
      <h2>Audit trail</h2>
      <p class="muted">
        Every record of sign-ins and changes with this e-mail, newest first, also of an earlier user that had
        it.
      </p>
      <Read of={read} what="the audit trail">
        {({ rows }) =>
          rows.length === 0 ? (
            <p class="notice">There is no audit record of this user on the strand of {agent}.</p>
          ) : (
            <>
              <VerifyThese key={`${cursor} ${turn}`} service={service} agent={agent} rows={rows} />
              <AuditTable
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

function VerifyThese({
  service,
  agent,
  rows,
}: Pick<TrailProps, 'service' | 'agent'> & Pick<AuditRows, 'rows'>) {
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
      if (!signal.aborted) setVerdict({ ok: false, text: `Not verified: ${explain(error)}` })
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
            <button type="button" class="quiet" onClick={stop}>
              Stop
            </button>
          </>
        )}
      </div>
      <Result verdict={verdict}>
        <p>
          This browser computed each hash and signature, and the path of each up to a checkpoint signed by the
          agent’s key. It does not show that no record is missing: the check of the whole strand does.
        </p>
      </Result>
    </>
  )
}
