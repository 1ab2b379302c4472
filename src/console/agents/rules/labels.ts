import type { PolicyAction } from '../../../auth/row-policy.js'
import type { Zone } from '../../../client/index.js'

/** What each action of a rule permits. */
export const actionMeanings: Record<PolicyAction, string> = {
  read: 'Read, query, export and stream the records',
  write: 'Write matching records',
  delete: 'Delete and restore the records',
  erase: 'Permanently erase the bodies of the records',
}

/** When new rules take effect, for each zone (docs/ZONES.md). */
export const zoneRules: Record<Zone, string> = {
  free: 'Zone free: the rules take effect immediately.',
  governed:
    'Zone governed: the rules become a proposal, which is applied automatically after a delay (one minute by default). Until then a key with proposals:decide can reject it.',
  protected:
    'Zone protected: the rules become a proposal and take effect when another key with proposals:decide approves it.',
  immutable_core:
    'Zone immutable_core: the rules become a proposal and take effect when two other keys with admin:* approve it.',
}

/** The label of a record that the rules do not allow. */
export const refusedWords: Record<PolicyAction, string> = {
  read: 'hidden',
  write: 'refused',
  delete: 'refused',
  erase: 'refused',
}
