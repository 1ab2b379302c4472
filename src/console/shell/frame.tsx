import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { route, type Route } from '../route.js'
import { PaletteButton } from './palette.js'
import { AppearanceSwitch } from './appearance.js'
import { Mark } from './mark.js'
import { serverState } from '../parts/server-state.js'
import { missingScope, openPlaces, type Place, places } from './places.js'
import { session, signOut } from '../parts/session.js'
import { whoText } from '../parts/words.js'

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
          <PaletteButton />
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

/** The screens: links, and on a narrow page behind a button. */
function Navigation() {
  const { value } = session
  const shown = route.value
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  useEffect(() => setOpen(false), [shown])
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !isOpen) return
    setOpen(false)
    button.current?.focus()
  }
  return (
    <div class={isOpen ? 'screens open' : 'screens'} onKeyDown={onKeyDown}>
      <button
        ref={button}
        type="button"
        class="menu-button"
        aria-expanded={isOpen}
        aria-controls="screens"
        onClick={() => setOpen(!isOpen)}
      >
        Menu
      </button>
      <nav id="screens" aria-label="Screens">
        {(value.kind === 'in' ? places : openPlaces).map((place) => (
          <PlaceLink key={place.name} place={place} shown={shown} />
        ))}
      </nav>
    </div>
  )
}

function PlaceLink({ place, shown }: { place: Place; shown: Route }) {
  const { value } = session
  const { name, href, screens } = place
  const missing = value.kind === 'in' ? missingScope(place, value.who) : undefined
  if (missing !== undefined) {
    return (
      <span class="nav-missing">
        <a role="link" aria-disabled="true">
          {name}
        </a>{' '}
        <small>needs {missing}</small>
      </span>
    )
  }
  return (
    <a href={href} aria-current={screens.includes(shown.screen) ? 'page' : undefined}>
      {name}
    </a>
  )
}

function Account() {
  const { value } = session
  if (value.kind !== 'in') return null
  const { who } = value
  return (
    <>
      <a class="who" href="#/account" title="What this key may do">
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
