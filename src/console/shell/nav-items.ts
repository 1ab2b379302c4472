import { reaches } from '../../auth/namespace.js'
import { logAgent } from '../parts/labels.js'
import type { Route } from '../route.js'
import { hasScope, type Scope, type WhoAmI } from '../parts/session.js'

/** A link of the navigation bar. */
export interface NavItem {
  name: string
  href: string
  screens: Route['screen'][]
  scope: Scope | undefined
  /** Whether it shows to a user what the rules of the agents permit. */
  isForUsers?: true
  /** The agents that a key has to reach, if it is limited: all of them, or one. */
  agents?: '*' | typeof logAgent
}

/** The links in the order of the bar. */
export const navItems: readonly NavItem[] = [
  { name: 'Home', href: '#/home', screens: ['home'], scope: undefined },
  {
    name: 'Agents',
    href: '#/agents',
    screens: ['agents', 'agent', 'trace'],
    scope: 'records:read',
    isForUsers: true,
  },
  { name: 'Live', href: '#/live', screens: ['live'], scope: 'records:read', isForUsers: true },
  { name: 'Proposals', href: '#/proposals', screens: ['proposals'], scope: 'proposals:decide' },
  { name: 'Users', href: '#/users', screens: ['users'], scope: 'admin:organisms', agents: '*' },
  { name: 'Audit', href: '#/audit', screens: ['audit'], scope: 'records:read', isForUsers: true },
  { name: 'Keys', href: '#/keys', screens: ['keys'], scope: 'admin:*', agents: '*' },
  { name: 'Log', href: '#/log', screens: ['log'], scope: 'records:read', agents: logAgent },
  { name: 'Health', href: '#/health', screens: ['health'], scope: 'admin:*', agents: '*' },
  { name: 'Verify', href: '#/verify', screens: ['verify'], scope: undefined },
  { name: 'API', href: 'docs', screens: [], scope: undefined },
]

/** Links that work without signing in. */
export const publicNavItems = navItems.filter(({ name }) => name === 'Verify' || name === 'API')

/** Says which screens a key cannot use, and why; undefined if it can use all. */
export function hiddenScreens(who: WhoAmI): { count: number; text: string } | undefined {
  const hidden = navItems.flatMap((item) => {
    const missing = missingFor(item, who)
    return missing === undefined ? [] : [`${item.name} (${missing})`]
  })
  if (hidden.length === 0) return undefined
  return { count: hidden.length, text: `Screens that need other permissions: ${hidden.join(', ')}` }
}

/** What a key or a user lacks for a screen: a scope, or access to agents. */
export function missingFor({ scope, isForUsers, agents }: NavItem, who: WhoAmI): string | undefined {
  if (scope === undefined || (who.kind === 'user' && isForUsers === true)) return undefined
  if (!hasScope(who, scope)) return scope
  if (agents === '*') return who.agents.length === 0 ? undefined : 'access to all agents'
  return agents === undefined || reaches(who.agents, agents) ? undefined : `access to ${agents}`
}
