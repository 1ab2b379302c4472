import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../register-chaos.js'
import type { TcpProxy } from '../tcp-proxy.js'
import type { SupervisedNode } from './supervised-node.js'
import type { ThreeNodes } from './three-nodes.js'

/** Something that happens to a cluster under load, and is over when it resolves. */
export interface Fault {
  name: string
  /** Whether it is one of links between nodes. */
  needsLinks?: true
  act(nodes: ThreeNodes, chance: Chance): Promise<void>
}

/** Something that happens to one node. */
export type OfOne = (all: ThreeNodes, node: SupervisedNode, chance: Chance) => Promise<void>

export const ofOwner = (name: string, act: OfOne): Fault => ({
  name,
  act: async (nodes, chance) => act(nodes, await nodes.owner(), chance),
})

/** What a fault of one node may last, 1.5 to 4 leases of a second: mostly long enough for others to take over, and little more. */
export const leases = (chance: Chance) => pause(1_500 + chance() ** 2 * 2_500)

/** A shorter one, over before anybody is expelled. */
export const moment = (chance: Chance) => pause(50 + chance() * 500)

export function anyOf<Item>(items: readonly Item[], chance: Chance): Item {
  const item = items[Math.floor(chance() * items.length)]
  if (item === undefined) throw new Error('Expected one of some')
  return item
}

/** In an order of chance. */
export function shuffled<Item>(items: readonly Item[], chance: Chance): Item[] {
  const places = items.map((item) => ({ item, at: chance() }))
  return places.sort((one, other) => one.at - other.at).map(({ item }) => item)
}

/** Has proxies pass everything on again: what was held comes late, or never. */
export function heal(proxies: readonly TcpProxy[], chance: Chance): void {
  for (const proxy of proxies) {
    if (chance() < 0.5) proxy.break()
    proxy.heal()
  }
}
