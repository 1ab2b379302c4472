import { render } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { AgentPage } from './agents/agent-page.js'
import { AgentsPage } from './agents/agents-page.js'
import { shortHash } from './parts/format.js'
import { lazy } from './parts/load.js'
import { Palette, watchKeys } from './shell/palette.js'
import { agentLink, followAddress, parseRoute, type Route, route, scrubAddress } from './route.js'
import { applyAppearance } from './shell/appearance.js'
import { Frame } from './shell/frame.js'
import { serverState, watchServer } from './parts/server-state.js'
import { escapeShownTexts } from './parts/shown-texts.js'
import { shownText } from '../auth/shown-text.js'
import { answerTabs, resume, session, watchSession } from './parts/session.js'
import { SignedInPage, SignIn, StandbyPage } from './shell/sign-in.js'

const AuditPage = lazy(async () => (await import('./audit/audit-page.js')).AuditPage)
const FirstPage = lazy(async () => (await import('./start/first-page.js')).FirstPage)
const HealthPage = lazy(async () => (await import('./health/health-page.js')).HealthPage)
const HomePage = lazy(async () => (await import('./home/home-page.js')).HomePage)
const KeysPage = lazy(async () => (await import('./keys/keys-page.js')).KeysPage)
const LivePage = lazy(async () => (await import('./live/live-page.js')).LivePage)
const LogPage = lazy(async () => (await import('./log/log-page.js')).LogPage)
const ProposalsPage = lazy(async () => (await import('./proposals/proposals-page.js')).ProposalsPage)
const TracePage = lazy(async () => (await import('./trace/trace-page.js')).TracePage)
const UsersPage = lazy(async () => (await import('./users/users-page.js')).UsersPage)
const VerifyPage = lazy(async () => (await import('./verify/verify-page.js')).VerifyPage)

const titles: Record<Exclude<Route['screen'], 'agent' | 'trace' | 'users'>, string> = {
  start: '',
  unknown: '',
  first: 'First record',
  agents: 'Agents',
  proposals: 'Proposals',
  keys: 'Keys',
  log: 'Log',
  home: 'Home',
  account: 'Permissions',
  live: 'Live view',
  health: 'Health',
  audit: 'Audit',
  verify: 'Verify',
}

const scrubbed = scrubAddress()
escapeShownTexts()
applyAppearance()
followAddress()
watchServer()
watchSession()
answerTabs()
watchKeys()
void resume(
  scrubbed
    ? 'The address contained a key, which browser histories and logs keep. It was removed and not used. If it was a real key, delete it and create a new one'
    : undefined,
)

const container = document.querySelector('#console')
if (container !== null) render(<Console />, container)

function Console() {
  const { kind } = session.value
  const name = titleOf(route.value)
  const shown = `${kind} ${name}`
  const before = useRef(shown)
  // Not later, because then the user may already have put the focus elsewhere.
  useLayoutEffect(() => {
    document.title = name === '' ? 'Strandfast' : `${shownText(name)} · Strandfast`
    // The link that was followed is no longer on the page. The sign-in form focuses its own field.
    if (before.current !== shown && kind === 'in') document.querySelector<HTMLElement>('#main')?.focus()
    before.current = shown
  }, [shown])
  // After a sign-in without a screen in the address, show Home; replace() keeps the sign-in out of the
  // history. Reads the address, as `route` is behind it when a link was followed just now.
  useEffect(() => {
    if (kind === 'in' && parseRoute(location.hash).screen === 'start') location.replace('#/home')
  }, [kind, route.value])
  return (
    <Frame>
      <Screen />
      <Palette />
    </Frame>
  )
}

function titleOf(shown: Route): string {
  if (shown.screen === 'agent') return shown.agent
  if (shown.screen === 'trace') return `Trace ${shortHash(shown.id)}`
  if (shown.screen === 'users') return shown.email ?? (shown.id === undefined ? 'Users' : 'User')
  return titles[shown.screen]
}

function Screen() {
  const shown = route.value
  const { value } = session
  if (shown.screen === 'verify') return <VerifyPage />
  const state = serverState.value
  if (state.kind === 'standby') return <StandbyPage serving={state.serving} />
  if (value.kind === 'starting') return null
  if (value.kind === 'out') return <SignIn notice={value.notice} />
  switch (shown.screen) {
    case 'start':
      return null
    case 'home':
      return <HomePage session={value} />
    case 'account':
      return <SignedInPage session={value} />
    case 'live':
      return <LivePage session={value} agents={shown.agents} />
    case 'health':
      return <HealthPage session={value} />
    case 'first':
      return <FirstPage session={value} />
    case 'agents':
      return <AgentsPage session={value} />
    case 'agent':
      return <AgentPage key={agentLink(shown.agent)} session={value} route={shown} />
    case 'proposals':
      return <ProposalsPage session={value} route={shown} />
    case 'keys':
      return <KeysPage session={value} search={shown.search} />
    case 'log':
      return <LogPage session={value} />
    case 'trace':
      return <TracePage key={shown.id} session={value} id={shown.id} />
    case 'users':
      return <UsersPage session={value} route={shown} />
    case 'audit':
      return <AuditPage session={value} route={shown} />
    case 'unknown':
      return <UnknownPage />
  }
}

function UnknownPage() {
  return (
    <div class="page narrow">
      <h1>Page not found</h1>
      <p>
        The address may belong to another version. <a href="#/agents">Go to the agents</a>
      </p>
    </div>
  )
}
