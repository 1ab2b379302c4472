import { useEffect, useRef } from 'preact/hooks'
import type { ServiceClient, ServerInfoResponse } from '../../client/index.js'
import { Read, useLoaded } from '../parts/load.js'
import { useMetrics } from '../parts/metrics-watch.js'
import { useNow } from '../parts/now.js'
import { may, seesServer, type SignedIn } from '../parts/session.js'
import { Empty, Failure, Time } from '../parts/texts.js'
import { whoText } from '../parts/words.js'
import { NewestRecords } from './newest-records.js'
import { type Overview, readOverview } from './read-overview.js'
import { ownTiles, serverTiles, type Tile } from './tiles.js'
import { type Warning, warningsOf } from './warnings.js'

/** How often is read what the metrics do not tell. */
const READ_EVERY_MS = 30_000

/** How things are: what there is, what happens, and what somebody should look at. */
export function HomePage({ session }: { session: SignedIn }) {
  const { service, who } = session
  const read = useLoaded<Overview>('home', (signal) => readOverview(service, who, signal))
  useEvery(READ_EVERY_MS, read.reload)
  const seesNothing = !may(who, 'records:read') && !may(who, 'proposals:decide')
  return (
    <div class="page">
      <div class="head">
        <h1>Home</h1>
        <p class="muted">
          {whoText(who)} · <a href="#/account">what it may do</a>
        </p>
      </div>
      {seesNothing ? (
        <Empty title="There is nothing here that this key may see">
          {who.kind === 'user'
            ? 'The rules of each agent say what you may read. Open an agent by its address.'
            : 'Agents and records need records:read, proposals need proposals:decide.'}
        </Empty>
      ) : (
        <Read of={read} what="how things are">
          {(overview) => <Overall session={session} overview={overview} />}
        </Read>
      )}
    </div>
  )
}

function Overall({ session, overview }: { session: SignedIn; overview: Overview }) {
  const { service, who } = session
  const { reached } = overview
  return (
    <>
      {seesServer(who) ? (
        <OfServer service={service} overview={overview} />
      ) : (
        <Tiles tiles={ownTiles(overview)} />
      )}
      {reached !== undefined && <WhereToGo session={session} isNew={isNew(overview)} />}
      {reached !== undefined && <NewestRecords session={session} reached={reached} />}
    </>
  )
}

/** What an administrator sees: figures of the server too, and what is the matter with it. */
function OfServer({ service, overview }: { service: ServiceClient; overview: Overview }) {
  const watch = useMetrics(service)
  const nowMs = useNow()
  const readings = watch.readings.value
  const problem = watch.problem.value
  const cluster = overview.server?.cluster ?? null
  return (
    <>
      <Warnings warnings={warningsOf(overview, { readings, nowMs })} />
      {problem !== undefined && <Failure message={`The metrics could not be read: ${problem}`} />}
      <Tiles tiles={[...ownTiles(overview), ...serverTiles(readings, nowMs)]} />
      {cluster !== null && <ClusterMembers cluster={cluster} />}
    </>
  )
}

function Warnings({ warnings }: { warnings: readonly Warning[] }) {
  return (
    <div role="status" class="warnings">
      {warnings.map(({ name, text, href }) => (
        <p key={`${name} ${text}`} class="notice warn">
          <strong>{name}.</strong> {text} {href !== undefined && <a href={href}>Look at it</a>}
        </p>
      ))}
    </div>
  )
}

function Tiles({ tiles }: { tiles: readonly Tile[] }) {
  return (
    <ul class="tiles" aria-label="Figures">
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

/** Nothing was written yet: the default agent is always there. */
function isNew({ reached }: Overview): boolean {
  return (
    reached !== undefined &&
    !reached.isCut &&
    reached.statuses.every(({ record_count: count }) => count === 0)
  )
}

function WhereToGo({ session: { who }, isNew }: { session: SignedIn; isNew: boolean }) {
  if (!isNew || !may(who, 'records:write')) return null
  return (
    <p class="buttons">
      <a class="button primary" href="#/start">
        Write a first record
      </a>
    </p>
  )
}

/** Does something again and again while the page is seen, and when it is seen again. */
function useEvery(ms: number, act: () => void): void {
  const last = useRef(0)
  useEffect(() => {
    last.current = Date.now()
    const look = (): void => {
      if (document.visibilityState === 'hidden' || Date.now() - last.current < ms) return
      last.current = Date.now()
      act()
    }
    const timer = setInterval(look, ms)
    document.addEventListener('visibilitychange', look)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', look)
    }
  }, [ms, act])
}

type Cluster = NonNullable<ServerInfoResponse['cluster']>

/** The nodes of a cluster: which shards each owns, of which it has copies, and how far these are behind. */
function ClusterMembers({ cluster }: { cluster: Cluster }) {
  const name = 'Nodes of the cluster'
  return (
    <section>
      <h2>{name}</h2>
      <ul aria-label={name}>
        {cluster.members.map((member) => (
          <li key={member.node}>
            <strong>{member.node}</strong> at {member.address} <Doing member={member} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Doing({ member }: { member: Cluster['members'][number] }) {
  const { serves_since_ms: since, owned_shards: owned, held_shards: held, lag_secs: lag } = member
  const copies = held.length - owned.length
  const behind = lag === null ? '' : `, ${lag.toFixed(1)} s behind`
  const kept = copies === 0 ? behind : `, copies of ${copies}${behind}`
  if (since === null) return <>stands by{kept}</>
  return (
    <>
      serves {owned.length === 1 ? 'shard' : 'shards'} {owned.join(', ')} since <Time ms={since} />
      {kept}
    </>
  )
}
