import { appearance, appearances } from './appearance.js'
import { missingFor, publicNavItems, navItems } from './nav-items.js'
import { isUtc, showUtc } from '../parts/format.js'
import { hasScope, type Scope, type Session, signOut } from '../parts/session.js'

/** The dialog over the page. */
export type Overlay = 'nothing' | 'palette' | 'new-agent' | 'new-key'

/** An entry of the palette. */
export interface Command {
  name: string
  kind: 'screen' | 'action' | 'agent' | 'record' | 'trace' | 'proposal' | 'key' | 'user'
  /** The scope that the key lacks, or access to agents. */
  missing?: string | undefined
  /** @returns the dialog to show next, if any */
  act: () => Overlay | undefined
}

const appearanceNames = { system: 'system setting', light: 'light', dark: 'dark' }

/** The screens and actions that the palette offers in this session. */
export function commandsFor(current: Session): Command[] {
  const looks = appearances.map((one) => ({
    ...action(`Appearance: ${appearanceNames[one]}`),
    act: () => {
      appearance.value = one
      return undefined
    },
  }))
  const times = {
    ...action(`Times in ${isUtc.value ? 'local time' : 'UTC'}`),
    act: () => {
      showUtc(!isUtc.value)
      return undefined
    },
  }
  const verify: Command = { ...action('Verify a file'), act: () => goTo('#/verify') }
  if (current.kind !== 'in')
    return [...publicNavItems.map(({ name, href }) => linkCommand('screen', name, href)), verify, ...looks]
  const { who } = current
  const unless = (scope: Scope): Scope | undefined => (hasScope(who, scope) ? undefined : scope)
  const screens = navItems.map((item) => ({
    ...linkCommand('screen', item.name, item.href),
    missing: missingFor(item, who),
  }))
  return [
    ...screens,
    linkCommand('screen', 'Permissions', '#/account'),
    { ...action('New agent'), missing: unless('agents:admin'), act: () => 'new-agent' },
    {
      ...action('New key'),
      missing: screens.find(({ name }) => name === 'Keys')?.missing,
      act: () => 'new-key',
    },
    verify,
    ...looks,
    times,
    { ...action('Sign out'), act: () => void signOut('Signed out in all tabs. The key was removed') },
  ]
}

/** A command that opens an address. */
export function linkCommand(kind: Command['kind'], name: string, href: string): Command {
  return { name, kind, act: () => goTo(href) }
}

function action(name: string): Pick<Command, 'name' | 'kind'> {
  return { name, kind: 'action' }
}

function goTo(href: string): undefined {
  if (href.startsWith('#')) location.hash = href
  else location.assign(href)
}
