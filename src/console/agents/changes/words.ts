import type { Zone } from '../../../client/index.js'
import type { Left } from '../../parts/confirm.js'
import { zoneMeanings, zoneRules } from '../../parts/words.js'

/** When a change of the agent itself takes effect, by the rule of its zone. */
export function ruleText(zone: Zone, governedSecs: number | undefined): string {
  if (zone === 'immutable_core')
    return 'The zone is immutable_core: it becomes a proposal, and takes effect when two keys with admin:* approve it that neither come from yours nor from one another.'
  if (zone === 'governed' && governedSecs !== undefined)
    return `The zone is governed: it becomes a proposal, which applies itself after ${governedSecs} s. Until then somebody who may decide can reject it.`
  return zoneRules[zone]
}

/** What a change of zone leaves. */
export function leftByZone(from: Zone, to: Zone): Left {
  const ended = from === 'free' ? [] : ['All other open proposals of the agent: they end as rejected.']
  const never =
    to === 'immutable_core'
      ? [
          'Any way to delete, restore or erase a record of the agent, or to remove an edge, for everybody. What the records say about people can no longer be erased.',
        ]
      : []
  return {
    goes: [...never, ...ended],
    stays: [
      'Every record. The zone has no say in who reads and writes.',
      `From then on: ${zoneMeanings[to].toLowerCase()}.`,
      backText[to],
    ],
    notReached: [],
  }
}

const backText: Record<Zone, string> = {
  free: 'The way back takes effect at once.',
  governed: 'The way back waits as well, and can be rejected.',
  protected: 'The way back needs the approval of somebody else.',
  immutable_core: 'The way back needs two keys with admin:*, neither of them yours.',
}

/** What another key leaves. */
export function leftByRotation(isLeaked: boolean): Left {
  return {
    goes: ['The key in force: the server never signs with it again. This cannot be undone.'],
    stays: [
      'Every record and its signature: they verify with the old public key.',
      isLeaked
        ? 'A signed record that names the new key, and says that the old one may be in other hands.'
        : 'A signed record, by the old key, that names the new one. Who trusts the old key need not change anything.',
    ],
    notReached: isLeaked
      ? [
          'Whoever checks exports: give them the new key and the strand. With the old key alone, a strand that somebody else continues with it looks right.',
          'Checkpoints that somebody kept before the leak: only they show what the strand was. Compare with them.',
        ]
      : [
          'Backups that were made before: they hold the old secret key.',
          'Exports that end before the rotation: they have no checkpoint any more.',
        ],
  }
}
