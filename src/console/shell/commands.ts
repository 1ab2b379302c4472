import { agentLink } from '../route.js'
import { appearance, appearances } from './appearance.js'
import { missingScope, openPlaces, places } from './places.js'
import { may, type Scope, type Session, signOut } from '../parts/session.js'

/** What is shown over the page. */
export type Opened = 'nothing' | 'palette' | 'new-agent' | 'new-key'

/** Something that the palette does. */
export interface Command {
  name: string
  kind: 'screen' | 'action' | 'agent'
  /** The scope that the key lacks for it. */
  missing?: Scope | undefined
  /** @returns what is shown then, where it is something over the page */
  act: () => Opened | undefined
}

const appearanceNames = { system: 'as the system is', light: 'light', dark: 'dark' }

/** All that whoever is signed in can go to or do. */
export function commandsFor(current: Session): Command[] {
  const looks = appearances.map((one) => ({
    ...action(`Appearance: ${appearanceNames[one]}`),
    act: () => {
      appearance.value = one
      return undefined
    },
  }))
  const verify: Command = { ...action('Verify a file'), act: () => goTo('#/verify') }
  if (current.kind !== 'in')
    return [...openPlaces.map(({ name, href }) => screen(name, href)), verify, ...looks]
  const { who } = current
  const unless = (scope: Scope): Scope | undefined => (may(who, scope) ? undefined : scope)
  return [
    ...places.map((place) => ({ ...screen(place.name, place.href), missing: missingScope(place, who) })),
    screen('What this key may do', '#/account'),
    { ...action('New agent'), missing: unless('agents:admin'), act: () => 'new-agent' },
    { ...action('New key'), missing: unless('admin:*'), act: () => 'new-key' },
    verify,
    ...looks,
    ...(who.kind === 'open'
      ? []
      : [{ ...action('Sign out'), act: () => void signOut('Signed out. The key is forgotten') }]),
  ]
}

/** Leads to an agent. */
export function agentCommand(name: string): Command {
  return { name, kind: 'agent', act: () => goTo(agentLink(name)) }
}

function action(name: string): Pick<Command, 'name' | 'kind'> {
  return { name, kind: 'action' }
}

function screen(name: string, href: string): Command {
  return { name, kind: 'screen', act: () => goTo(href) }
}

function goTo(href: string): undefined {
  if (href.startsWith('#')) location.hash = href
  else location.assign(href)
}
