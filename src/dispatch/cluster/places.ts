import { assign } from './assignment.js'

/**
 * What a node does with a shard: it keeps its store up to the log, opens it, owns it, or gives it up
 * (docs/adr/0048-owners-of-shards.md).
 */
export type Place = 'followed' | 'opening' | 'owned' | 'leaving'

/** A node that is alive, as the others know it. */
export interface Candidate {
  node: string
  /** It is up to the logs, and reaches the others: it may own a share of the shards. */
  isReady: boolean
}

/** A shard as one node sees it. */
export interface SeenShard {
  place: Place
  /** The node that owns it, as its log says; undefined where it may be opened. */
  owner: string | undefined
  /** Whether its last owner gave it up for this node to have. */
  isOffered: boolean
  /** Whether it has been free for so long that whoever should have it does not take it. */
  isAbandoned: boolean
}

/** What a node decides by. */
export interface PlacesView {
  /** This node. */
  node: string
  /** All nodes that are alive, this one among them. */
  alive: readonly Candidate[]
  /** By their numbers. */
  shards: readonly SeenShard[]
}

/** What it does next. */
export interface NextSteps {
  /** Shards that it opens. */
  open: number[]
  /** A shard that it gives up, and the node that is to have it: one at a time. */
  handOver: { shard: number; to: string } | undefined
}

/**
 * What a node does next for the shards to be where they should. Nodes may see different things: the log decides who owns a
 * shard, whatever they believed.
 */
export function nextSteps({ node, alive, shards }: PlacesView): NextSteps {
  const owners = ownersOf(alive, shards)
  const open = [...shards.entries()]
    .filter(([shard, { place, owner, isOffered, isAbandoned }]) => {
      const isFree = place === 'followed' && owner === undefined
      return isFree && (isOffered || isAbandoned || owners[shard] === node)
    })
    .map(([shard]) => shard)
  const isBusy = shards.some(({ place }) => place === 'leaving' || place === 'opening')
  if (isBusy || open.length > 0) return { open, handOver: undefined }
  const shard = shards.findIndex(({ place }, at) => place === 'owned' && owners[at] !== node)
  const to = owners[shard]
  return { open, handOver: to === undefined ? undefined : { shard, to } }
}

/**
 * The node that should own each shard: those that are ready share them. While none is, one has all of them, since each is of use
 * only to who reaches the others: the one that has most.
 */
export function ownersOf(
  alive: readonly Candidate[],
  shards: readonly Pick<SeenShard, 'owner'>[],
): readonly (string | undefined)[] {
  const ready = alive.filter(({ isReady }) => isReady).map(({ node }) => node)
  const names = ready.length > 0 ? ready : soleOwner(alive, shards)
  if (names.length === 0) return shards.map(() => undefined)
  return assign(names, { shards: shards.length, copies: 1 }).map(({ owner }) => owner)
}

function soleOwner(alive: readonly Candidate[], shards: readonly Pick<SeenShard, 'owner'>[]): string[] {
  if (alive.length === 0) return []
  // Of those that have equally many, the one that a rendezvous hash names.
  const [first] = assign(
    alive.map(({ node }) => node),
    { shards: 1, copies: alive.length },
  )
  const order = first?.holders ?? []
  const ownedBy = (node: string) => shards.filter(({ owner }) => owner === node).length
  return order.toSorted((one, other) => ownedBy(other) - ownedBy(one)).slice(0, 1)
}
