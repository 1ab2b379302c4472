import type { Route } from '../route.js'
import { hasScope, type Scope, type WhoAmI } from '../parts/session.js'

/** A link of the navigation bar. */
export interface NavItem {
  name: string
  href: string
  screens: Route['screen'][]
  scope: Scope | undefined
}

/** The links in the order of the bar. */
export const navItems: readonly NavItem[] = [
  { name: 'Home', href: '#/home', screens: ['home'], scope: undefined },
  { name: 'Agents', href: '#/agents', screens: ['agents', 'agent', 'trace'], scope: 'records:read' },
  { name: 'Live', href: '#/live', screens: ['live'], scope: 'records:read' },
  { name: 'Proposals', href: '#/proposals', screens: ['proposals'], scope: 'proposals:decide' },
  { name: 'Users', href: '#/users', screens: ['users'], scope: 'admin:organisms' },
  { name: 'Audit', href: '#/audit', screens: ['audit'], scope: 'records:read' },
  { name: 'Keys', href: '#/keys', screens: ['keys'], scope: 'admin:*' },
  { name: 'Log', href: '#/log', screens: ['log'], scope: 'records:read' },
  { name: 'Health', href: '#/health', screens: ['health'], scope: 'admin:*' },
  { name: 'Verify', href: '#/verify', screens: ['verify'], scope: undefined },
  { name: 'API', href: 'docs', screens: [], scope: undefined },
]

/** Links that work without signing in. */
export const publicNavItems = navItems.filter(({ name }) => name === 'Verify' || name === 'API')

/** Says which screens a key cannot use, and why; undefined if it can use all. */
export function hiddenScreens(who: WhoAmI): { count: number; text: string } | undefined {
  const hidden = navItems.flatMap((item) => {
    const missing = missingScope(item, who)
    return missing === undefined ? [] : [`${item.name} (${missing})`]
  })
  if (hidden.length === 0) return undefined
  return { count: hidden.length, text: `Screens that need other permissions: ${hidden.join(', ')}` }
}

/** The scope that a key lacks for a screen; undefined for users, whose rights come from rules. */
export function missingScope({ scope }: NavItem, who: WhoAmI): Scope | undefined {
  return scope === undefined || who.kind === 'user' || hasScope(who, scope) ? undefined : scope
}
