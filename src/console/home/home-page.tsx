import type { ServiceClient } from '../../client/index.js'
import { useEffect, useRef } from 'preact/hooks'
import { useMetrics } from '../parts/metrics-watch.js'
import { type Loaded, useLoaded } from '../parts/load.js'
import { useNow } from '../parts/now.js'
import { Empty, Failure, Loading } from '../parts/texts.js'
import { may, seesServer, type SignedIn } from '../parts/session.js'
import { whoText } from '../parts/words.js'
import { ClusterMembers } from './cluster-members.js'
import { NewestRecords } from './newest-records.js'
import { type Overview, readOverview } from './read-overview.js'
import { ownTiles, serverTiles, type Tile } from './tiles.js'
import { type Warning, warningsOf } from './warnings.js'

/** How often is read what the metrics do not tell. */
const READ_EVERY_MS = 30_000

/** How things are: what there is, what happens, and what somebody should look at. */
export function HomePage({ session }: { session: SignedIn }) {
  const { service, who } = session
  const { loaded, reload } = useLoaded<Overview>('home', (signal) => readOverview(service, who, signal))
  useEvery(READ_EVERY_MS, reload)
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
        <Overall session={session} loaded={loaded} reload={reload} />
      )}
    </div>
  )
}

function Overall(props: { session: SignedIn; loaded: Loaded<Overview>; reload: () => void }) {
  const { session, loaded, reload } = props
  const { service, who } = session
  if (loaded.kind === 'failed') return <Failure message={loaded.message} retry={reload} />
  const { value } = loaded
  if (value === undefined) return <Loading what="how things are" />
  const { reached } = value
  return (
    <>
      {seesServer(who) ? <OfServer service={service} overview={value} /> : <Tiles tiles={ownTiles(value)} />}
      {reached !== undefined && <WhereToGo session={session} isNew={isNew(value)} />}
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
