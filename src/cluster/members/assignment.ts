import { hash } from 'node:crypto'
import { assert } from '../../base/assert.js'

/** Which nodes have a shard. */
export interface Assigned {
  /** The node that should own it. */
  owner: string
  /** Nodes that should have a copy of it, best first; the owner is the first. */
  holders: readonly string[]
}

/**
 * Which node should own each shard: rendezvous hashing (Thaler and Ravishankar 1998), in which each node owns an even share: of two
 * none owns two more than the other. Every node computes it from the nodes that it takes for alive; where they differ, they try for one
 * shard, and the log decides.
 * @param nodes names of the nodes that are alive, in any order; at least one
 * @param copies how many nodes should have each shard
 * @returns one for each shard, by its number
 */
export function assign(
  nodes: readonly string[],
  { shards, copies }: { shards: number; copies: number },
): Assigned[] {
  assert(nodes.length > 0, 'somebody has to own the shards')
  const share = Math.floor(shards / nodes.length)
  /** How many nodes may own one more. */
  let larger = shards % nodes.length
  const preferences = Array.from({ length: shards }, (_none, shard) => preferenceOf(nodes, shard))
  const owned = new Map(nodes.map((node) => [node, 0]))
  const owners = new Map<number, string>()
  // The strongest wishes of all shards first, so that the order of the shards' numbers favours none.
  const wishes = preferences.flatMap((preference, shard) => preference.map((wish) => ({ shard, ...wish })))
  for (const { shard, node } of wishes.sort(strongestFirst)) {
    const count = owned.get(node) ?? 0
    const isFull = count > share || (count === share && larger === 0)
    if (owners.has(shard) || isFull) continue
    owners.set(shard, node)
    owned.set(node, count + 1)
    if (count === share) larger -= 1
  }
  return preferences.map((preference, shard) => {
    const owner = owners.get(shard)
    assert(owner !== undefined, 'the shares of all nodes have room for all shards')
    const others = preference.map(({ node }) => node).filter((node) => node !== owner)
    return { owner, holders: [owner, ...others].slice(0, Math.max(1, copies)) }
  })
}

interface Wish {
  node: string
  weight: string
}

function preferenceOf(nodes: readonly string[], shard: number): Wish[] {
  return nodes.map((node) => ({ node, weight: hash('sha256', `${shard} ${node}`) })).sort(strongestFirst)
}

/** Weights are digests in hex: of two that differ, the later in the alphabet is the larger. */
function strongestFirst(one: Wish, other: Wish): number {
  if (one.weight === other.weight) return one.node < other.node ? -1 : 1
  return one.weight > other.weight ? -1 : 1
}
