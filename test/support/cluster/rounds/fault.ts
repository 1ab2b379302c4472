import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../register-chaos.js'
import type { TcpProxy } from '../tcp-proxy.js'
import type { SupervisedNode } from './supervised-node.js'
import type { ThreeNodes } from './three-nodes.js'

/** A fault of a cluster under load, which is over when `act` resolves. */
export interface Fault {
  name: string
  /** Whether it affects links between nodes. */
  needsLinks?: true
  /** @returns the breaches that it has seen itself */
  act(nodes: ThreeNodes, chance: Chance): Promise<readonly string[] | void>
}

/** A fault of one node. */
export type OfOne = (all: ThreeNodes, node: SupervisedNode, chance: Chance) => Promise<void>

export const ofOwner = (name: string, act: OfOne): Fault => ({
  name,
  act: async (nodes, chance) => act(nodes, await nodes.owner(), chance),
})

/** Waits 1.5 to 4 leases of one second: mostly long enough for a take-over, and rarely much longer. */
export const leases = (chance: Chance) => pause(1_500 + chance() ** 2 * 2_500)

/** Waits a shorter time, in which no node is expelled. */
export const moment = (chance: Chance) => pause(50 + chance() * 500)

export function anyOf<Item>(items: readonly Item[], chance: Chance): Item {
  const item = items[Math.floor(chance() * items.length)]
  if (item === undefined) throw new Error('Nothing to choose from')
  return item
}

/** The items in random order. */
export function shuffled<Item>(items: readonly Item[], chance: Chance): Item[] {
  const ordered = items.map((item) => ({ item, at: chance() }))
  return ordered.sort((one, other) => one.at - other.at).map(({ item }) => item)
}

/** Heals proxies: what was held arrives late, or never. */
export function heal(proxies: readonly TcpProxy[], chance: Chance): void {
  for (const proxy of proxies) {
    if (chance() < 0.5) proxy.break()
    proxy.heal()
  }
}
