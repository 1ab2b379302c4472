import { hash } from 'node:crypto'
import { assert } from '../../base/assert.js'

/**
 * The role of a node for a shard. `elsewhere`: other nodes hold it; `followed`: this node keeps its store up
 * to date with the log; `opening`; `owned`; `leaving`: this node is releasing it
 * (docs/adr/0048-owners-of-shards.md).
 */
export type ShardRole = 'elsewhere' | 'followed' | 'opening' | 'owned' | 'leaving'

/** The owner of a shard whose log was not read yet; it may have none. */
export const unknownOwner = ''

/** A live node, as the others know it. */
export interface Candidate {
  node: string
  /** It is up to date with the logs and has links to the others, so it may own a share of the shards. */
  isReady: boolean
  /** It has been alive for several leases, so its stores are most likely up to date. */
  isSettled: boolean
  /** Shards that it owns, or whose stores are up to date with their logs. */
  holds: readonly number[]
}

export interface ObservedShard {
  role: ShardRole
  /** The owner according to the log, or `unknownOwner`; undefined if the shard may be opened. */
  owner: string | undefined
  /** Whether its last owner released it for this node. */
  isOffered: boolean
  /** For how many leases it has been free. */
  freeLeases: number
  /** Whether this node has a store of it that it stopped following long ago. */
  isStale: boolean
}

/** The input of a decision. */
export interface PlacementView {
  node: string
  /** All live nodes including this one. */
  alive: readonly Candidate[]
  /** How many nodes hold each shard. */
  copies: number
  /** Indexed by shard number. */
  shards: readonly ObservedShard[]
}

/** The result of a decision. */
export interface NextSteps {
  open: number[]
  /** A shard to release, and the node that gets it: one at a time. */
  transfer: { shard: number; to: string } | undefined
  /** Shards whose stores this node starts to follow, and stops following. */
  follow: number[]
  unfollow: number[]
  /** Shards whose stores this node removes. */
  remove: number[]
}

/**
 * Decides the next steps that move shards to where they should be. Nodes may see different states; the log
 * decides who owns a shard.
 */
export function nextSteps(view: PlacementView): NextSteps {
  const { node, alive, copies, shards } = view
  const owners = ownersOf(alive, shards)
  const holds = holderTest({ node, alive, copies, shards: shards.length })
  const numbersOf = (are: (shard: ObservedShard, number: number) => boolean) =>
    [...shards.entries()].filter(([number, shard]) => are(shard, number)).map(([number]) => number)
  const follow = numbersOf(
    ({ role }, number) => role === 'elsewhere' && (holds(number) || owners[number] === node),
  )
  const unfollow = numbersOf(
    ({ role, owner }, number) =>
      role === 'followed' && !holds(number) && owners[number] !== node && isOwnedByOther(owner, node),
  )
  const delay = takeOverDelay(node, alive, shards.length)
  const open = numbersOf(({ role, owner, isOffered, freeLeases }, number) => {
    const isFree = role === 'followed' && owner === undefined
    return isFree && (isOffered || owners[number] === node || freeLeases > delay(number))
  })
  const transfer = open.length > 0 ? undefined : transferOf(view, owners)
  const remove = numbersOf(
    ({ role, isStale }, number) => role === 'elsewhere' && isStale && !follow.includes(number),
  )
  return { open, transfer, follow, unfollow, remove }
}

/** A shard to transfer, unless this node is already transferring or opening one. */
function transferOf(
  { node, shards }: PlacementView,
  owners: readonly (string | undefined)[],
): NextSteps['transfer'] {
  if (shards.some(({ role }) => role === 'leaving' || role === 'opening')) return undefined
  const shard = shards.findIndex(({ role }, at) => role === 'owned' && owners[at] !== node)
  const to = owners[shard]
  return to === undefined ? undefined : { shard, to }
}

/**
 * How many leases a shard must be without an owner before a node other than the assigned one opens it. Each
 * node waits longer than the one before it, so that they do not compete.
 */
function takeOverDelay(node: string, alive: readonly Candidate[], shards: number): (shard: number) => number {
  const names = alive.map((one) => one.node)
  const assigned = names.length === 0 ? [] : assign(names, { shards, copies: names.length })
  return (shard) => 1 + Math.max(0, assigned[shard]?.holders.indexOf(node) ?? 0)
}

/** Whether another node owns a shard. */
function isOwnedByOther(owner: string | undefined, node: string): boolean {
  return owner !== undefined && owner !== unknownOwner && owner !== node
}

/**
 * Decides which shards a node should hold: its share among itself and the ready nodes, whether or not it is
 * ready.
 */
function holderTest({
  node,
  alive,
  copies,
  shards,
}: Omit<PlacementView, 'shards'> & { shards: number }): (shard: number) => boolean {
  const names = new Set([node, ...readyOf(alive)])
  if (names.size <= copies) return () => true
  const assigned = assign([...names], { shards, copies })
  return (shard) => assigned[shard]?.holders.includes(node) === true
}

/**
 * The node that should own each shard; the ready nodes share them. If the assigned node does not hold a shard
 * yet, its current owner keeps it, or else the next holder gets it. If no node is ready, a single node gets
 * all shards, because only nodes that are linked to it can serve its shards: the one that owns most.
 */
export function ownersOf(
  alive: readonly Candidate[],
  shards: readonly Pick<ObservedShard, 'owner'>[],
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

/** @returns undefined if there is none, or the owner of a shard is unknown */
function soleOwner(
  alive: readonly Candidate[],
  shards: readonly Pick<ObservedShard, 'owner'>[],
): string | undefined {
  if (alive.length === 0 || shards.some(({ owner }) => owner === unknownOwner)) return undefined
  // Among nodes that own equally many, prefers one that has not just started, then the rendezvous hash.
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

/** The assignment of a shard. */
interface Assigned {
  /** The node that should own it. */
  owner: string
  /** Nodes that should have a copy of it, in order of preference; the owner is the first. */
  holders: readonly string[]
}

/**
 * Assigns an owner to each shard by rendezvous hashing (Thaler and Ravishankar 1998), with even shares: no
 * node owns more than one shard above another. Every node computes the assignment from the nodes that it
 * considers alive; where nodes differ, they compete for a shard, and the log decides.
 * @param nodes names of the live nodes, in any order; at least one
 * @param copies how many nodes should hold each shard
 * @returns one assignment for each shard, by its number
 */
export function assign(
  nodes: readonly string[],
  { shards, copies }: { shards: number; copies: number },
): Assigned[] {
  assert(nodes.length > 0, 'an assignment needs at least one node')
  const share = Math.floor(shards / nodes.length)
  /** How many nodes may still get one shard more than the others. */
  let larger = shards % nodes.length
  const preferences = Array.from({ length: shards }, (_none, shard) => preferenceOf(nodes, shard))
  const owned = new Map(nodes.map((node) => [node, 0]))
  const owners = new Map<number, string>()
  // The strongest preferences of all shards first, so that low shard numbers have no advantage.
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
    assert(owner !== undefined, 'the shares of all nodes add up to all shards')
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

/** Weights are hex digests and are compared as text. */
function strongestFirst(one: Wish, other: Wish): number {
  if (one.weight === other.weight) return one.node < other.node ? -1 : 1
  return one.weight > other.weight ? -1 : 1
}
