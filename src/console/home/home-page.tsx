import { useEffect, useRef } from 'preact/hooks'
import type { ServerInfo, ServiceClient } from '../../client/index.js'
import { counted } from '../parts/format.js'
import { Read, useLoaded } from '../parts/load.js'
import { useRoving } from '../parts/roving.js'
import { useMetrics } from '../parts/metrics.js'
import { useNow } from '../parts/now.js'
import { canReadServer, hasScope, type SignedIn } from '../parts/session.js'
import { Empty, Failure, Time } from '../parts/texts.js'
import { identityText } from '../parts/labels.js'
import { type EarlierRow, type Overview, readNewest, readOverview, ROWS_SHOWN } from './read-overview.js'
import { ownTiles, serverTiles, type Tile, type Warning, warningsOf } from './tiles.js'
import type { AccessibleAgents } from '../parts/accessible-agents.js'
import { switchType, useAddress } from '../parts/address.js'
import { SystemButton, TailRow, useTail } from '../parts/records/tail-rows.js'

/** The interval between readings of the overview. */
const OVERVIEW_INTERVAL_MS = 30_000
/** The interval between readings of the server, whose nodes may die. */
const SERVER_INTERVAL_MS = 5_000

/** The overview: warnings, figures and the newest records. */
export function HomePage({ session }: { session: SignedIn }) {
  const { service, who } = session
  const read = useLoaded<Overview>('home', (signal) => readOverview(service, who, signal))
  useInterval(OVERVIEW_INTERVAL_MS, read.reload)
  const seesNothing = !hasScope(who, 'records:read') && !hasScope(who, 'proposals:decide')
  return (
    <div class="page">
      <div class="head">
        <h1>Home</h1>
        <p class="muted">
          {identityText(who)} · <a href="#/account">Permissions</a>
        </p>
      </div>
      {seesNothing ? (
        <Empty title="No records or proposals to show">
          {who.kind === 'user'
            ? 'The rules of each agent define what you can read. Open an agent by its address.'
            : 'Reading agents and records needs the scope records:read, and proposals proposals:decide.'}
        </Empty>
      ) : (
        <>
          {canReadServer(who) && <ServerSection service={service} overview={read.loaded.value} />}
          <Read of={read} what="the overview">
            {(overview) => <OverviewSections session={session} overview={overview} />}
          </Read>
        </>
      )}
    </div>
  )
}

function OverviewSections({ session, overview }: { session: SignedIn; overview: Overview }) {
  const { accessible } = overview
  return (
    <>
      {!canReadServer(session.who) && <Tiles tiles={ownTiles(overview)} />}
      {accessible !== undefined && <FirstRecordLink session={session} isNew={isNew(overview)} />}
      {accessible !== undefined && <NewestRecords session={session} accessible={accessible} />}
    </>
  )
}

/**
 * The section for administrators: warnings, figures of the server, and the nodes of the cluster. A server whose
 * agents cannot be read, and so has no overview, still says what is wrong with it.
 */
function ServerSection({ service, overview }: { service: ServiceClient; overview: Overview | undefined }) {
  const read = useLoaded('server', (signal) => service.server({ signal }))
  useInterval(SERVER_INTERVAL_MS, read.reload)
  const server = read.loaded.value
  const watch = useMetrics(service)
  const nowMs = useNow()
  const readings = watch.readings.value
  const problem = watch.problem.value
  const cluster = server?.cluster ?? null
  return (
    <>
      <Warnings warnings={warningsOf(server, { readings, nowMs })} />
      {read.loaded.kind === 'failed' && <Failure message={read.loaded.message} retry={read.reload} />}
      {problem !== undefined && <Failure message={`Could not read the metrics: ${problem}`} />}
      <Tiles
        tiles={[...(overview === undefined ? [] : ownTiles(overview)), ...serverTiles(readings, nowMs)]}
      />
      {cluster !== null && <ClusterMembers cluster={cluster} />}
    </>
  )
}

function Warnings({ warnings }: { warnings: readonly Warning[] }) {
  return (
    <div role="status" class="warnings">
      {warnings.map(({ name, text, href }) => (
        <p key={`${name} ${text}`} class="notice warn">
          <strong>{name}.</strong> {text} {href !== undefined && <a href={href}>Details</a>}
        </p>
      ))}
    </div>
  )
}

function Tiles({ tiles }: { tiles: readonly Tile[] }) {
  const list = useRoving<HTMLUListElement>()
  return (
    <ul ref={list} class="tiles" aria-label="Metrics">
      {tiles.map(({ name, value, note, href }) => (
        <li key={name}>
          <a href={href}>
            <span class="tile-name">{name}</span>
            <span class="tile-value">{value}</span>
            <small class="muted">{note}</small>
          </a>
        </li>
      ))}
    </ul>
  )
}

/** Whether no agent has application records yet. The default agent always exists. */
function isNew({ accessible }: Overview): boolean {
  return (
    accessible !== undefined &&
    !accessible.isCut &&
    accessible.statuses.every(({ record_count: count }) => count === 0)
  )
}

function FirstRecordLink({ session: { who }, isNew }: { session: SignedIn; isNew: boolean }) {
  if (!isNew || !hasScope(who, 'records:write')) return null
  return (
    <p class="buttons">
      <a class="button primary" href="#/start">
        Write a first record
      </a>
    </p>
  )
}

/** Repeats an action while the page is visible, and runs it when the page becomes visible again. */
function useInterval(ms: number, act: () => void): void {
  const last = useRef(0)
  useEffect(() => {
    last.current = Date.now()
    const runIfDue = (): void => {
      if (document.visibilityState === 'hidden' || Date.now() - last.current < ms) return
      last.current = Date.now()
      act()
    }
    const timer = setInterval(runIfDue, ms)
    document.addEventListener('visibilitychange', runIfDue)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', runIfDue)
    }
  }, [ms, act])
}

type Cluster = NonNullable<ServerInfo['cluster']>

/** The nodes of a cluster: the shards that each owns, its copies of other shards, and their lag. */
function ClusterMembers({ cluster }: { cluster: Cluster }) {
  const name = 'Nodes of the cluster'
  return (
    <section>
      <h2>{name}</h2>
      <ul aria-label={name}>
        {cluster.members.map((member) => (
          <li key={member.node}>
            <strong>{member.node}</strong> at {member.address} <MemberState member={member} />
          </li>
        ))}
        {cluster.stopped.map(({ node, address }) => (
          <li key={node}>
            <strong>{node}</strong> at {address} does not run
          </li>
        ))}
      </ul>
    </section>
  )
}

function MemberState({ member }: { member: Cluster['members'][number] }) {
  const { serves_since_ms: since, owned_shards: owned, held_shards: held, lag_secs: lag } = member
  const copies = held.length - owned.length
  const behind = lag === null ? '' : `, ${lag.toFixed(1)} s behind`
  const replicas = copies === 0 ? behind : `, copies of ${counted(copies, 'shard')}${behind}`
  if (since === null) return <>standby{replicas}</>
  return (
    <>
      serves {owned.length === 1 ? 'shard' : 'shards'} {owned.join(', ')} since <Time ms={since} />
      {replicas}
    </>
  )
}

/** The most agents of one stream (GET /v1/stream). */
const AGENTS_MAX = 1_000

/** The last records of all agents that the key can access, updated as they arrive. */
function NewestRecords({ session, accessible }: { session: SignedIn; accessible: AccessibleAgents }) {
  const { service, who } = session
  const [showsSystem, setSystem] = useAddress('system', switchType)
  const read = useLoaded(`newest ${showsSystem}`, (signal) =>
    readNewest(service, accessible, { showsSystem, signal }),
  )
  return (
    <section class="newest">
      <div class="section-head">
        <h2>Last records</h2>
        <SystemButton isOn={showsSystem} set={setSystem} />
        <a href="#/live">Live view</a>
      </div>
      <Read of={read} what="the last records">
        {(earlier) =>
          accessible.statuses.length === 0 ? (
            <Empty title="No agents yet">
              The first write to an agent that this key can access creates it.
            </Empty>
          ) : (
            <Rows
              key={showsSystem}
              session={session}
              earlier={earlier}
              agents={who.agents.length === 0 ? undefined : namesOf(accessible)}
            />
          )
        }
      </Read>
    </section>
  )
}

/** The agents for a stream, which a limited key has to name. */
function namesOf({ statuses }: AccessibleAgents): string[] {
  return statuses.slice(0, AGENTS_MAX).map(({ agent_id: agent }) => agent)
}

function Rows(props: {
  session: SignedIn
  earlier: readonly EarlierRow[]
  agents: readonly string[] | undefined
}) {
  const { session, earlier, agents } = props
  // The stream starts at the newest record that was read, so that there is no gap.
  const tail = useTail(session.service, agents, { since: earlier[0]?.hlc })
  // The two newest blocks always have more rows than the page shows.
  const live = tail.blocks.value.slice(0, 2).flatMap(({ rows }) => rows)
  const liveKeys = new Set(live.map(keyOf))
  const rows = [...live, ...earlier.filter((row) => !liveKeys.has(keyOf(row)))].slice(0, ROWS_SHOWN)
  const state = tail.state.value
  return (
    <>
      {state.kind === 'refused' && <Failure message={state.message} />}
      {rows.length === 0 && <Empty title="No records yet">Records appear here as they are written.</Empty>}
      <ol
        class={rows.length === 0 ? 'live-rows none' : 'live-rows of-many'}
        aria-label="Last records"
        tabIndex={0}
      >
        {rows.map((row) => (
          <TailRow key={keyOf(row)} row={row} isPretty={false} ofMany />
        ))}
      </ol>
    </>
  )
}

function keyOf({ agent, seq }: { agent: string; seq: number }): string {
  return `${agent} ${seq}`
}
