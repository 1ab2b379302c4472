import type { Chance } from '../register-chaos.js'
import { type Fault, faultsNamed } from './faults.js'

/** How often each fault comes in one deal. */
const deck: readonly Fault[] = Object.entries({
  'kill -9 of the owner': 2,
  'kill -9 of all': 1,
  'a stopped owner': 3,
  'an owner that is cut off': 2,
  'an owner that is cut off one way': 1,
  'ended connections': 3,
  'a primary that is killed, and a standby promoted': 2,
  'standbys cut off, waiting ended, the primary killed, and a standby promoted': 2,
  'an owner that stops in order': 1,
  'a clock of the owner that jumps, and another one takes over': 1,
  'two at once': 3,
}).flatMap(([name, times]) => faultsNamed(Array.from({ length: times }, () => name)))

/** So many faults, by chance: each deal has all of them before the next one begins. */
export function deal(rounds: number, chance: Chance): Fault[] {
  const dealt: Fault[] = []
  while (dealt.length < rounds) {
    const cards = deck.map((fault) => ({ fault, at: chance() }))
    dealt.push(...cards.sort((one, other) => one.at - other.at).map(({ fault }) => fault))
  }
  return dealt.slice(0, rounds)
}
