import { useState } from 'preact/hooks'
import { memberOrganism, reaches } from '../../auth/namespace.js'
import { type AgentStatusResponse, ServiceError } from '../../client/index.js'
import { sameView } from '../parts/address.js'
import { CursorPages } from '../parts/card-table.js'
import { Read, useChange, useLoaded } from '../parts/load.js'
import { canReadUsers, namespaceOf, readUser, useDefaultAgent, useOrganisms } from '../parts/users.js'
import { useRoving } from '../parts/roving.js'
import { Button, Empty, Loading } from '../parts/texts.js'
import { ExportDialog } from '../parts/export-dialog.js'
import { RecordDrawer } from '../parts/records/record-drawer.js'
import { agentLink, auditLink, type Route } from '../route.js'
import { canReadServer, type SignedIn, hasScope, type WhoAmI } from '../parts/session.js'
import {
  type AuditFilter,
  type AuditRows,
  type SeqSpan,
  auditAgentOf,
  auditQuery,
  organismOf,
  readAudit,
  readFailures,
  seqsOfSpan,
  serverAudit,
} from '../parts/audit-events.js'
import { Choice, Form, Problem } from '../parts/field.js'
import { AuditFilters, useAuditFilter } from './audit-filter.js'
import { AuditTable } from '../parts/audit-table.js'
import { FailuresPlot } from './failures-plot.js'

type AuditRoute = Extract<Route, { screen: 'audit' }>

const PAGE_RECORDS = 50

/** The audit records: sign-ins, and changes of users and keys. */
export function AuditPage({ session, route }: { session: SignedIn; route: AuditRoute }) {
  const { who } = session
  const defaultAgent = useDefaultAgent(session)
  if (who.kind !== 'user' && !hasScope(who, 'records:read')) return <NeedsScope />
  return (
    <div class="page">
      <h1>Audit</h1>
      <p class="lead">
        Sign-ins, and changes of users and keys. Each event is a signed record: open it to see and prove it.
      </p>
      {defaultAgent === undefined ? (
        <Loading what="the strands" />
      ) : (
        <Strands session={session} route={route} defaultAgent={defaultAgent} />
      )}
    </div>
  )
}

/** The choice of a strand that the key can reach, and its records. */
function Strands(props: { session: SignedIn; route: AuditRoute; defaultAgent: string }) {
  const { session, route, defaultAgent } = props
  const organisms = useOrganisms(session)
  const names = strandNames(session.who, defaultAgent, organisms.value ?? [])
  const agent = route.agent ?? Object.keys(names)[0]
  if (agent === undefined) {
    return (
      <Empty title="No strand of audit records among the agents of this key">
        Users without an organization have theirs on <code>{defaultAgent}</code>, users of an organization on{' '}
        <code>{auditAgentOf('organization')}</code>.
      </Empty>
    )
  }
  return <Strand session={session} route={route} agent={agent} names={{ [agent]: agent, ...names }} />
}

function Strand(props: {
  session: SignedIn
  route: AuditRoute
  agent: string
  names: Readonly<Record<string, string>>
}) {
  const { session, route, agent, names } = props
  const { service } = session
  const strand = useLoaded<AgentStatusResponse | undefined>(agent, (signal) =>
    service.agent(agent).status({ signal }).catch(absent),
  )
  return (
    <>
      <div class="tools">
        <Choice
          name="Strand"
          value={agent}
          options={names}
          set={(chosen) => {
            location.hash = auditLink(chosen)
          }}
        />
      </div>
      <Read of={strand} what="the strand">
        {(status) =>
          status === undefined ? (
            <NoStrand agent={agent} />
          ) : (
            <AuditOf key={agent} session={session} status={status} seq={route.seq} reload={strand.reload} />
          )
        }
      </Read>
    </>
  )
}

/** The strands that the key or the user can reach, with what their records are about. */
function strandNames(
  who: WhoAmI,
  defaultAgent: string,
  organisms: readonly string[],
): Record<string, string> {
  const ofKey = who.agents.map((pattern) => organismOf(pattern.replace(/::\*$/, auditAgentOf(''))))
  const ids = new Set([...organisms, ...ofKey, who.user?.namespace].flatMap((id) => id ?? []))
  // Users without an organization.
  ids.delete('')
  const names = {
    [defaultAgent]: `Users without an organization (${defaultAgent})`,
    [serverAudit]: `The server and its keys (${serverAudit})`,
    ...Object.fromEntries([...ids].map((id) => [auditAgentOf(id), `Users of ${id}`])),
  }
  return Object.fromEntries(Object.entries(names).filter(([agent]) => canReach(who, agent)))
}

function canReach(who: WhoAmI, agent: string): boolean {
  if (agent === serverAudit) return canReadServer(who)
  return who.user === null ? reaches(who.agents, agent) : (memberOrganism(agent) ?? '') === who.user.namespace
}

/** The status of an agent that does not exist, or that the key or the user cannot reach. */
function absent(error: unknown): undefined {
  if (error instanceof ServiceError && (error.status === 404 || error.status === 403)) return undefined
  throw error
}

function NeedsScope() {
  return (
    <div class="page narrow">
      <h1>Audit</h1>
      <p class="notice">
        The audit records need a key with the scope <code>records:read</code>.
      </p>
    </div>
  )
}

function NoStrand({ agent }: { agent: string }) {
  const [name, setName] = useState('')
  if (agent === serverAudit) {
    return (
      <Empty title="No records yet">
        The server adds a record when an API key is created or deleted, a strand is imported, or the license
        changes.
      </Empty>
    )
  }
  return (
    <Empty title={`Agent “${agent}” not found, or this key has no access to it`}>
      <Form
        class="go-to centered"
        submit={() => {
          if (name !== '') location.hash = auditLink(name)
        }}
      >
        <label>
          <span class="hidden">Name of the default agent</span>
          <input
            placeholder="SERVICE_AGENT_ID"
            autocomplete="off"
            value={name}
            onInput={(event) => setName(event.currentTarget.value.trim())}
          />
        </label>
        <Button text="Open its audit records" type="submit" />
      </Form>
    </Empty>
  )
}

interface AuditOfProps {
  session: SignedIn
  status: AgentStatusResponse
  seq: number | undefined
  reload: () => void
}

function AuditOf({ session, status, seq, reload }: AuditOfProps) {
  const { service } = session
  const { agent_id: agent, record_count: headSeq } = status
  const at = useAuditFilter()
  const { filter, cursors, setCursors } = at
  const tools = useRoving<HTMLDivElement>()
  const { page, failures } = useAudit(session, { agent, headSeq, filter, cursor: cursors.at(-1) })
  const linkTo = (to?: number): string => sameView(auditLink(agent, to), to === undefined ? { raw: '' } : {})
  return (
    <>
      <AuditFilters agent={agent} at={at} />
      {agent !== serverAudit &&
        failures.loaded.kind === 'loaded' &&
        failures.loaded.value &&
        filter.outcome !== 'success' && <FailuresPlot {...failures.loaded.value} span={filter.span} />}
      <div ref={tools} class="tools" role="toolbar" aria-label={`Audit records of ${agent}`}>
        <ExportRange service={service} status={status} filter={filter} />
        <Button text="Refresh" class="quiet" onClick={reload} />
        <a class="whole-check" href={agentLink(agent, 'proof')}>
          Check the whole strand
        </a>
      </div>
      <Read of={page} what="audit records">
        {(found) =>
          found === undefined ? (
            <NoUser email={filter.user} agent={agent} who={session.who} />
          ) : found.rows.length === 0 ? (
            <Empty title="No audit records match">
              Choose a longer period, or all events. Records appear here when users register or sign in.
            </Empty>
          ) : (
            <AuditTable
              session={session}
              agent={agent}
              name={`Audit records of ${agent}`}
              rows={found.rows}
              linkTo={linkTo}
            />
          )
        }
      </Read>
      <CursorPages cursors={cursors} set={setCursors} next={page.loaded.value?.next} />
      {seq !== undefined && (
        <RecordDrawer
          key={seq}
          service={service}
          status={status}
          seq={seq}
          linkTo={linkTo}
          changed={reload}
        />
      )}
    </>
  )
}

/** A page of the records that match a filter, and their failures for the plot. */
function useAudit(
  session: SignedIn,
  of: { agent: string; headSeq: number; filter: AuditFilter; cursor: string | undefined },
) {
  const { service } = session
  const { agent, headSeq, filter, cursor } = of
  const key = `${headSeq} ${JSON.stringify(filter)}`
  const wanted = (signal: AbortSignal) => readWanted(session, { agent, typed: filter.user, signal })
  const page = useLoaded<AuditRows | undefined>(`${key} ${cursor ?? ''}`, async (signal) => {
    const user = await wanted(signal)
    if (user === undefined) return undefined
    const query = auditQuery(agent, { ...filter, user })
    const start = cursor === undefined ? {} : { cursor }
    return readAudit(service, agent, { query: { ...query, ...start, limit: PAGE_RECORDS }, signal })
  })
  const failures = useLoaded(key, async (signal) => {
    const user = await wanted(signal)
    return user === undefined
      ? undefined
      : readFailures(service, agent, { filter: { ...filter, user }, signal })
  })
  return { page, failures }
}

/**
 * The user of a filter as the records name it: what was typed or, for an e-mail, its HMAC; undefined if no
 * user has the e-mail, or if the key cannot read the users.
 */
async function readWanted(
  { service, who }: SignedIn,
  { agent, typed, signal }: { agent: string; typed: string; signal: AbortSignal },
): Promise<string | undefined> {
  if (!typed.includes('@')) return typed
  const organism = organismOf(agent)
  if (!canReadUsers(who, organism)) return undefined
  return (await readUser(namespaceOf(service, organism), typed, signal))?.email_hmac
}

function NoUser({ email, agent, who }: { email: string; agent: string; who: SignedIn['who'] }) {
  if (!canReadUsers(who, organismOf(agent))) {
    return (
      <Empty title="This key cannot look up e-mails">
        The records have an HMAC in place of an e-mail. Sign in with a key that can manage these users, or
        enter the HMAC.
      </Empty>
    )
  }
  return (
    <Empty title={`No user has the e-mail “${email}”`}>
      Enter the whole e-mail. Records of e-mails without a user are found by their HMAC.
    </Empty>
  )
}

/** Exports all records of the strand in the chosen period, of any type, with a checkpoint. */
function ExportRange(props: {
  service: SignedIn['service']
  status: AgentStatusResponse
  filter: AuditFilter
}) {
  const { service, status, filter } = props
  const [range, setRange] = useState<SeqSpan | 'empty' | undefined>(undefined)
  const { isBusy, problem, run } = useChange()
  const open = async (): Promise<void> =>
    setRange((await seqsOfSpan(service, status.agent_id, filter.span)) ?? 'empty')
  return (
    <>
      <Button text="Export this period" disabled={isBusy} onClick={() => void run(open)} />
      {range === 'empty' && <span role="status">There are no records in this period.</span>}
      <Problem text={problem} />
      {typeof range === 'object' && (
        <ExportDialog service={service} status={status} range={range} close={() => setRange(undefined)} />
      )}
    </>
  )
}
