import type { PolicyAction } from '../../../auth/row-policy.js'
import type { Zone } from '../../../client/index.js'

/** What each action of a rule lets users do. */
export const actionMeanings: Record<PolicyAction, string> = {
  read: 'Read, query, export and stream the records',
  write: 'Write such records',
  delete: 'Delete and restore the records',
  erase: 'Erase the bodies of the records permanently',
}

/** When new rules hold, by the zone of the agent (docs/OPERATIONS.md, Zones and proposals). */
export const zoneRules: Record<Zone, string> = {
  free: 'The zone is free: they hold at once.',
  governed:
    'The zone is governed: they become a proposal, which applies itself after a while, a minute unless the server is set otherwise. Until then somebody who may decide can reject it.',
  protected:
    'The zone is protected: they become a proposal, and hold when somebody else with proposals:decide approves it.',
  immutable_core:
    'The zone is immutable_core: they become a proposal, and hold when two different admin keys, neither of them yours, have approved it.',
}

/** What a record is called that rules do not allow. */
export const refusedWords: Record<PolicyAction, string> = {
  read: 'hidden',
  write: 'refused',
  delete: 'refused',
  erase: 'refused',
}
