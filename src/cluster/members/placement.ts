import { hash } from 'node:crypto'
import { assert } from '../../base/assert.js'

/**
 * What a node does with a shard: nothing, as other nodes hold it; it keeps its store up to the log, opens it, owns it, or gives it up
 * (docs/adr/0048-owners-of-shards.md).
 */
export type ShardRole = 'elsewhere' | 'followed' | 'opening' | 'owned' | 'leaving'

/** Who owns a shard whose log was not read yet: perhaps nobody. */
export const unknownOwner = ''

/** A node that is alive, as the others know it. */
export interface Candidate {
  node: string
  /** It is up to the logs, and reaches the others: it may own a share of the shards. */
  isReady: boolean
  /** It has been alive for some leases, so that it has most likely all that the logs have. */
  isSettled: boolean
  /** Shards that it owns, or whose stores it has up to their logs. */
  holds: readonly number[]
}

/** A shard as one node sees it. */
export interface SeenShard {
  place: ShardRole
  /** The node that owns it, as its log says, or `unknownOwner`; undefined where it may be opened. */
  owner: string | undefined
  /** Whether its last owner gave it up for this node to have. */
  isOffered: boolean
  /** For how many leases it has been free. */
  freeLeases: number
  /** Whether there is a store of it that this node has not kept for long. */
  isLeft: boolean
}

/** What a node decides by. */
export interface PlacesView {
  /** This node. */
  node: string
  /** All nodes that are alive, this one among them. */
  alive: readonly Candidate[]
  /** How many nodes hold each shard. */
  copies: number
  /** By their numbers. */
  shards: readonly SeenShard[]
}

/** What it does next. */
export interface NextSteps {
  /** Shards that it opens. */
  open: number[]
  /** A shard that it gives up, and the node that is to have it: one at a time. */
  handOver: { shard: number; to: string } | undefined
  /** Shards whose stores it keeps up to their logs from now on, and those whose stores it keeps no more. */
  follow: number[]
  unfollow: number[]
  /** Those whose stores it removes. */
  remove: number[]
}

/**
 * What a node does next for the shards to be where they should. Nodes may see different things: the log decides who owns a
 * shard, whatever they believed.
 */
export function nextSteps(view: PlacesView): NextSteps {
  const { node, alive, copies, shards } = view
  const owners = ownersOf(alive, shards)
  const holds = held({ node, alive, copies, shards: shards.length })
  const numbersOf = (are: (shard: SeenShard, number: number) => boolean) =>
    [...shards.entries()].filter(([number, shard]) => are(shard, number)).map(([number]) => number)
  const follow = numbersOf(
    ({ place }, number) => place === 'elsewhere' && (holds(number) || owners[number] === node),
  )
  const unfollow = numbersOf(
    ({ place, owner }, number) =>
      place === 'followed' && !holds(number) && owners[number] !== node && isOther(owner, node),
  )
  const patience = patienceOf(node, alive, shards.length)
  const open = numbersOf(({ place, owner, isOffered, freeLeases }, number) => {
    const isFree = place === 'followed' && owner === undefined
    return isFree && (isOffered || owners[number] === node || freeLeases > patience(number))
  })
  const handOver = open.length > 0 ? undefined : handOverOf(view, owners)
  const remove = numbersOf(
    ({ place, isLeft }, number) => place === 'elsewhere' && isLeft && !follow.includes(number),
  )
  return { open, handOver, follow, unfollow, remove }
}

/** A shard that a node gives up, where it neither gives one up nor opens one. */
function handOverOf(
  { node, shards }: PlacesView,
  owners: readonly (string | undefined)[],
): NextSteps['handOver'] {
  if (shards.some(({ place }) => place === 'leaving' || place === 'opening')) return undefined
  const shard = shards.findIndex(({ place }, at) => place === 'owned' && owners[at] !== node)
  const to = owners[shard]
  return to === undefined ? undefined : { shard, to }
}

/**
 * For how many leases a shard has to be free until a node opens it that should not have it, as whoever should does not: one node after
 * the other, or several would.
 */
function patienceOf(node: string, alive: readonly Candidate[], shards: number): (shard: number) => number {
  const names = alive.map((one) => one.node)
  const assigned = names.length === 0 ? [] : assign(names, { shards, copies: names.length })
  return (shard) => 1 + Math.max(0, assigned[shard]?.holders.indexOf(node) ?? 0)
}

/** Whether a shard has an owner, which is another node. */
function isOther(owner: string | undefined, node: string): boolean {
  return owner !== undefined && owner !== unknownOwner && owner !== node
}

/** Which shards a node keeps: those of which it holds a copy beside the nodes that are ready, whether or not it is. */
function held({
  node,
  alive,
  copies,
  shards,
}: Omit<PlacesView, 'shards'> & { shards: number }): (shard: number) => boolean {
  const names = new Set([node, ...readyOf(alive)])
  if (names.size <= copies) return () => true
  const assigned = assign([...names], { shards, copies })
  return (shard) => assigned[shard]?.holders.includes(node) === true
}

/**
 * The node that should own each shard: those that are ready share them. Where the one that should does not hold the shard yet, whoever
 * owns it goes on with it, or else the next that holds it. While no node is ready, one has all of them, since each is of use only to who
 * reaches the others: the one that owns most.
 */
export function ownersOf(
  alive: readonly Candidate[],
  shards: readonly Pick<SeenShard, 'owner'>[],
): readonly (string | undefined)[] {
  const ready = readyOf(alive)
  if (ready.length === 0) {
    const sole = soleOwner(alive, shards)
    return shards.map(() => sole)
  }
  const holdersOf = new Map(alive.map(({ node, holds }) => [node, new Set(holds)]))
  return assign(ready, { shards: shards.length, copies: ready.length }).map(({ owner, holders }, shard) => {
    const holding = holders.filter((node) => holdersOf.get(node)?.has(shard) === true)
    if (holding.length === 0 || holding.includes(owner)) return owner
    const now = shards[shard]?.owner
    return now !== undefined && ready.includes(now) ? now : holding[0]
  })
}

function readyOf(alive: readonly Candidate[]): string[] {
  return alive.filter(({ isReady }) => isReady).map(({ node }) => node)
}

/** @returns undefined while there is none, or it is not known who owns what */
function soleOwner(
  alive: readonly Candidate[],
  shards: readonly Pick<SeenShard, 'owner'>[],
): string | undefined {
  if (alive.length === 0 || shards.some(({ owner }) => owner === unknownOwner)) return undefined
  // Of those that own equally many, one that has not just started; of these, the one that a rendezvous hash names.
  const [first] = assign(
    alive.map(({ node }) => node),
    { shards: 1, copies: alive.length },
  )
  const hashed = first?.holders ?? []
  const ownedBy = (node: string) => shards.filter(({ owner }) => owner === node).length
  const settled = new Set(alive.filter(({ isSettled }) => isSettled).map(({ node }) => node))
  const order = [
    ...hashed.filter((node) => settled.has(node)),
    ...hashed.filter((node) => !settled.has(node)),
  ]
  return order.toSorted((one, other) => ownedBy(other) - ownedBy(one))[0]
}

/** Which nodes have a shard. */
interface Assigned {
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
