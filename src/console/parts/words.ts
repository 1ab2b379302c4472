import type { Zone } from '../../client/index.js'
import { keyDigits } from './format.js'
import type { Scope, WhoAmI } from './session.js'

/** The agent whose strand the log is. */
export const logAgent = 'server::log'

/** What each scope lets a key do. */
export const scopeMeanings: Record<Scope, string> = {
  'records:read': 'Read agents, records, live streams and proofs',
  'records:write': 'Append records and edges, no more',
  'records:delete': 'Delete and restore records, remove edges',
  'records:erase': 'Erase the bodies of records permanently',
  ingest: 'Send records through the ingest routes',
  'agents:admin': 'Make agents, change their zones, rules and keys',
  'proposals:decide': 'Approve and reject changes that wait',
  'admin:organisms': 'Manage organisms and their users',
  'admin:*': 'Everything',
}

/** What each zone means for records once they are written (docs/OPERATIONS.md, Zones and proposals). */
export const zoneMeanings: Record<Zone, string> = {
  free: 'A change takes effect at once',
  governed: 'A change waits a minute or so, in which anybody who may decide can reject it',
  protected: 'A change waits until somebody else approves it',
  immutable_core: 'No record is ever changed; changes of the agent itself need two approvals',
}

/** When a change takes effect, by the rule of the agent's zone. */
export const zoneRules: Record<Zone, string> = {
  free: 'The zone is free: it takes effect at once.',
  governed:
    'The zone is governed: it becomes a proposal, which applies itself after a while, a minute unless the server is set otherwise. Until then somebody who may decide can reject it.',
  protected:
    'The zone is protected: it becomes a proposal, and takes effect when somebody else with proposals:decide approves it.',
  immutable_core: 'The zone is immutable_core: no record is ever changed.',
}

/** Zones from the strictest to the loosest, without the order of any object. */
export const zones: readonly Zone[] = ['free', 'governed', 'protected', 'immutable_core']

/** Whose key it is, in words. */
export function whoText({ kind, name, principal, user }: WhoAmI): string {
  if (kind === 'root') return 'Root key'
  if (kind === 'open') return 'No key needed'
  if (kind === 'user') return user?.email ?? principal
  return name === null ? `Key ${principal}` : `Key “${name}”`
}

/** Who did something, as lists name them: by the id that the strand has. */
export function principalText(principal: string): string {
  if (principal === 'root') return 'Root key'
  if (principal === 'open') return 'Somebody without a key'
  const [kind, namespace, user] = principal.split(':')
  if (kind !== 'user' || user === undefined) return `Key …${keyDigits(principal)}`
  return namespace === '' ? `User ${user}` : `User ${user} of ${namespace}`
}
