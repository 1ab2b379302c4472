import type { Route } from '../route.js'
import { may, type Scope, type WhoAmI } from '../parts/session.js'

/** A screen that the bar leads to. */
export interface Place {
  name: string
  href: string
  screens: Route['screen'][]
  scope: Scope | undefined
}

/** The screens in the order of the bar. */
export const places: readonly Place[] = [
  { name: 'Home', href: '#/home', screens: ['home'], scope: undefined },
  { name: 'Agents', href: '#/agents', screens: ['agents', 'agent'], scope: 'records:read' },
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

/** Places that need nobody to be signed in. */
export const openPlaces = places.filter(({ name }) => name === 'Verify' || name === 'API')

/** The scope that a key lacks for a place; a user’s rights are not scopes. */
export function missingScope({ scope }: Place, who: WhoAmI): Scope | undefined {
  return scope === undefined || who.kind === 'user' || may(who, scope) ? undefined : scope
}
