import type { ComponentChildren } from 'preact'
import { route, type Route } from '../route.js'
import { appearance, appearances } from './appearance.js'
import { serverState } from './server-state.js'
import { may, type Scope, session, signOut } from './session.js'
import { whoText } from './words.js'

interface Place {
  name: string
  href: string
  screens: Route['screen'][]
  scope: Scope | undefined
}

const places: Place[] = [
  { name: 'Agents', href: '#/agents', screens: ['agents', 'agent'], scope: 'records:read' },
  { name: 'Proposals', href: '#/proposals', screens: ['proposals'], scope: 'proposals:decide' },
  { name: 'Users', href: '#/users', screens: ['users'], scope: 'admin:organisms' },
  { name: 'Audit', href: '#/audit', screens: ['audit'], scope: 'records:read' },
  { name: 'Keys', href: '#/keys', screens: ['keys'], scope: 'admin:*' },
  { name: 'Log', href: '#/log', screens: ['log'], scope: 'records:read' },
  { name: 'Verify', href: '#/verify', screens: ['verify'], scope: undefined },
  { name: 'API', href: 'docs', screens: [], scope: undefined },
]

/** What is around every screen: the bar, banners, and the way past both. */
export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href="#/">
          <Mark />
          <span>Strandfast</span>
        </a>
        <Navigation />
        <div class="bar-end">
          <AppearanceSwitch />
          <Account />
        </div>
      </header>
      <Banners />
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  )
}

/** The address behind `#` is the screen's, so a link within the page moves the focus by itself. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

function Navigation() {
  const { value } = session
  const isIn = value.kind === 'in'
  const shown = places.filter(({ scope }) => isIn || scope === undefined)
  return (
    <nav aria-label="Screens">
      {shown.map(({ name, href, screens, scope }) => {
        const missing = isIn && scope !== undefined && value.who.kind !== 'user' && !may(value.who, scope)
        if (missing) {
          return (
            <span key={name} class="nav-missing">
              <a role="link" aria-disabled="true">
                {name}
              </a>{' '}
              <small>needs {scope}</small>
            </span>
          )
        }
        const isHere = screens.includes(route.value.screen)
        return (
          <a key={name} href={href} aria-current={isHere ? 'page' : undefined}>
            {name}
          </a>
        )
      })}
    </nav>
  )
}

function AppearanceSwitch() {
  return (
    <label class="appearance">
      <span class="hidden">Appearance</span>
      <select
        value={appearance.value}
        onChange={(event) => {
          const chosen = event.currentTarget.value
          appearance.value = appearances.find((one) => one === chosen) ?? 'system'
        }}
      >
        <option value="system">◐ Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  )
}

function Account() {
  const { value } = session
  if (value.kind !== 'in') return null
  const { who } = value
  return (
    <>
      <a class="who" href="#/" title="What this key may do">
        {whoText(who)}
      </a>
      {who.kind !== 'open' && (
        <button type="button" class="quiet" onClick={() => signOut('Signed out. The key is forgotten')}>
          Sign out
        </button>
      )}
    </>
  )
}

function Banners() {
  const state = serverState.value
  const { value } = session
  return (
    <>
      <div role="status" class="banners">
        {state.kind === 'away' && (
          <p class="banner bad">The server does not answer. This page looks again every two seconds.</p>
        )}
        {state.kind === 'back' && <p class="banner good">The server is back.</p>}
        {state.kind === 'limited' && <p class="banner warn">The server is not ready: {state.detail}</p>}
      </div>
      {value.kind === 'in' && value.who.kind === 'open' && (
        <p class="banner warn">
          This server asks for no key: anybody who reaches it reads and writes all data (SERVICE_DATA_OPEN).
        </p>
      )}
    </>
  )
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-back" d="M10 5c0 7 12 7 12 11s-12 4-12 11" />
      <path class="mark-front" d="M22 5c0 7-12 7-12 11s12 4 12 11" />
    </svg>
  )
}
