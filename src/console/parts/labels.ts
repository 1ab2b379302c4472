import type { Zone } from '../../client/index.js'
import { keyDigits } from './format.js'
import type { Scope, WhoAmI } from './session.js'

/** The agent whose strand is the server's log. */
export const logAgent = 'server::log'

/** What each scope permits. */
export const scopeMeanings: Record<Scope, string> = {
  'records:read': 'Read agents, records, live streams and proofs',
  'records:write': 'Append records and edges',
  'records:delete': 'Delete and restore records, remove edges',
  'records:erase': 'Permanently erase the bodies of records',
  ingest: 'Send records through the ingest routes',
  'agents:admin': 'Create agents, change their zones, rules and keys',
  'proposals:decide': 'Approve and reject pending changes',
  'admin:organisms': 'Manage organizations and their users',
  'admin:*': 'Everything',
}

/** How each zone treats changes of written records (docs/ZONES.md). */
export const zoneMeanings: Record<Zone, string> = {
  free: 'A change takes effect immediately',
  governed: 'A change is delayed by about a minute; until then a key with proposals:decide can reject it',
  protected: 'A change needs the approval of another key',
  immutable_core: 'Records can never be changed; changes of the agent itself need two approvals',
}

/** When a change takes effect, for each zone. */
export const zoneRules: Record<Zone, string> = {
  free: 'Zone free: the change takes effect immediately.',
  governed:
    'Zone governed: the change becomes a proposal, which is applied automatically after a delay (one minute by default). Until then a key with proposals:decide can reject it.',
  protected:
    'Zone protected: the change becomes a proposal and takes effect when another key with proposals:decide approves it.',
  immutable_core: 'Zone immutable_core: records can never be changed.',
}

/** The zones from the loosest to the strictest. */
export const zones: readonly Zone[] = ['free', 'governed', 'protected', 'immutable_core']

/** The name that the console shows for the signed-in identity. */
export function identityText({ kind, name, principal, user }: WhoAmI): string {
  if (kind === 'root') return 'Root key'
  if (kind === 'user') return user?.email ?? principal
  return name === null ? `Key ${principal}` : `Key “${name}”`
}

/** The name of a principal that a record refers to by id. */
export function principalText(principal: string): string {
  if (principal === 'root') return 'Root key'
  // Written by an earlier version, which could run without a key.
  if (principal === 'open') return 'Anonymous'
  const [kind, namespace, user] = principal.split(':')
  if (kind !== 'user' || user === undefined) return `Key …${keyDigits(principal)}`
  return `User …${keyDigits(user)}${namespace === '' ? '' : ` of ${namespace}`}`
}
