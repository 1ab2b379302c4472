import type { Chance } from '../register-chaos.js'
import { type Fault, shuffled } from './fault.js'
import { faultsNamed } from './faults.js'

/** How often each fault occurs in one deal. */
const deck: readonly Fault[] = Object.entries({
  'kill -9 of the owner': 2,
  'kill -9 of all': 1,
  'a stopped owner': 3,
  'stopped standbys': 2,
  'an owner that is cut off': 2,
  'an owner that is cut off one way': 1,
  'ended connections': 3,
  'a primary that is killed, and a standby promoted': 2,
  'standbys cut off, waiting ended, the primary killed, and a standby promoted': 2,
  'an owner that stops in order': 1,
  'a clock of the owner that jumps before a take-over': 1,
  'an owner that is cut off from the other nodes': 2,
  'an owner that is cut off from the other nodes one way': 1,
  'a record that is erased while a node is cut off from the others': 1,
  'two nodes that are cut off from each other, and perhaps the owner is killed': 1,
  'broken links': 1,
  'broken links to an owner whose database is slow, and perhaps it is killed': 1,
  'slow links': 1,
  'an upgrade, node by node': 1,
  'two faults together': 2,
  'three faults together': 1,
}).flatMap(([name, times]) => faultsNamed(Array.from({ length: times }, () => name)))

/**
 * Random faults: each deal contains all of them before the next deal begins.
 * @param linked whether faults of links are included
 */
export function deal(rounds: number, chance: Chance, linked: boolean): Fault[] {
  const cards = deck.filter(({ needsLinks }) => linked || needsLinks !== true)
  const dealt: Fault[] = []
  while (dealt.length < rounds) dealt.push(...shuffled(cards, chance))
  return dealt.slice(0, rounds)
}
