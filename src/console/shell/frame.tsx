import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { route, type Route } from '../route.js'
import { PaletteButton } from './palette.js'
import { AppearanceSwitch, Mark, TimeZoneSwitch } from './appearance.js'
import { useRoving } from '../parts/roving.js'
import { serverState } from '../parts/server-state.js'
import { hiddenScreens, missingFor, publicNavItems, type NavItem, navItems } from './nav-items.js'
import { session, type Session, signOut, type WhoAmI } from '../parts/session.js'
import { identityText } from '../parts/labels.js'
import { Button } from '../parts/texts.js'

/** The frame of every screen: the bar, the banners, and a link that skips them. */
export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to content
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
      <main id="main" tabIndex={-1} onPointerMove={showWhole}>
        {children}
      </main>
      {session.value.kind === 'in' && <TimeZoneSwitch />}
    </>
  )
}

/** The fragment of the address names the screen, so this link moves the focus by script. */
function skip(event: Event): void {
  event.preventDefault()
  document.querySelector<HTMLElement>('#main')?.focus()
}

/**
 * Shows the whole text of what ends in an ellipsis while the pointer is over it. In a row that a link covers,
 * the link shows the text, or the title, of what is below the pointer.
 */
function showWhole({ target, clientX, clientY }: PointerEvent): void {
  if (!(target instanceof HTMLElement)) return
  const below = document
    .elementsFromPoint(clientX, clientY)
    .filter((one): one is HTMLElement => one instanceof HTMLElement && one !== target)
  const cut = [target, ...below].find(isCut)
  if (target.classList.contains('whole'))
    target.title = below.find(({ title }) => title !== '')?.title ?? cut?.textContent ?? ''
  else if (cut !== undefined && target.title === '') cut.title = cut.textContent
}

function isCut(element: HTMLElement): boolean {
  return element.scrollWidth > element.clientWidth && getComputedStyle(element).textOverflow === 'ellipsis'
}

/** Links to the screens; on a narrow page they open from a button. */
function Navigation() {
  const { value } = session
  const shown = route.value
  const [isOpen, setOpen] = useState(false)
  const button = useRef<HTMLButtonElement>(null)
  const links = useRoving<HTMLElement>()
  useLayoutEffect(() => setOpen(false), [shown])
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
      <nav ref={links} id="screens" aria-label="Screens">
        {itemsFor(value).map((item) => (
          <NavLink key={item.name} item={item} shown={shown} />
        ))}
        {value.kind === 'in' && <HiddenScreens who={value.who} />}
      </nav>
    </div>
  )
}

/** The links to the screens that the key can use. */
function itemsFor(value: Session): readonly NavItem[] {
  if (value.kind !== 'in') return publicNavItems
  return navItems.filter((item) => missingFor(item, value.who) === undefined)
}

/** Says how many screens are not shown; the page of permissions says which, and why. */
function HiddenScreens({ who }: { who: WhoAmI }) {
  const hidden = hiddenScreens(who)
  if (hidden === undefined) return null
  return (
    <a class="nav-hidden" href="#/account" title={hidden.text}>
      {hidden.count} hidden<span class="hidden"> {hidden.count === 1 ? 'screen' : 'screens'}</span>
    </a>
  )
}

function NavLink({ item: { name, href, screens }, shown }: { item: NavItem; shown: Route }) {
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
      <a class="who" href="#/account" title="Permissions">
        {identityText(who)}
      </a>
      <Button
        text="Sign out"
        class="quiet"
        onClick={() => signOut('Signed out in all tabs. The key was removed')}
      />
    </>
  )
}

function Banners() {
  const state = serverState.value
  return (
    <div role="status" class="banners">
      {state.kind === 'unreachable' && (
        <p class="banner bad">The server does not respond. This page retries every two seconds.</p>
      )}
      {state.kind === 'back' && <p class="banner good">The server is back.</p>}
      {state.kind === 'limited' && <p class="banner warn">The server is not ready: {state.detail}</p>}
    </div>
  )
}
