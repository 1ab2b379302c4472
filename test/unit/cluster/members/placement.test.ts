import { describe, expect, it } from 'vitest'
import {
  type Candidate,
  nextSteps,
  ownersOf,
  type ShardRole,
  type PlacesView,
  type SeenShard,
  unknownOwner,
} from '../../../../src/cluster/members/placement.js'

const names = ['a', 'b', 'c']
const everything = Array.from({ length: 64 }, (_none, shard) => shard)
const candidates = (nodes: string[], isReady: boolean): Candidate[] =>
  nodes.map((node) => ({ node, isReady, isSettled: true, holds: everything }))
const ready = (...nodes: string[]) => candidates(nodes, true)
const unready = (...nodes: string[]) => candidates(nodes, false)
const seen = (
  owner: string | undefined,
  place: ShardRole = 'followed',
  more: Partial<SeenShard> = {},
): SeenShard => ({
  place,
  owner,
  isOffered: false,
  freeLeases: 0,
  isLeft: false,
  ...more,
})
/** What a node does where each holds every shard. */
const stepsOf = (view: Omit<PlacesView, 'copies'>) => nextSteps({ copies: names.length, ...view })

/** A cluster in which each node does at once what it decides, and sees what the others have done. */
class Cluster {
  readonly owners: (string | undefined)[]
  alive: Candidate[]
  /** How many shards have moved from one node to another. */
  moved = 0

  constructor(shards: number, alive: Candidate[]) {
    this.owners = Array.from({ length: shards }, () => undefined)
    this.alive = alive
  }

  /** One node after the other decides. @returns whether anything was done */
  step(): boolean {
    let isDone = false
    for (const { node } of this.alive) {
      const shards = this.owners.map((owner) => seen(owner, owner === node ? 'owned' : 'followed'))
      const { open, handOver } = stepsOf({ node, alive: this.alive, shards })
      for (const shard of open) this.owners[shard] = node
      if (handOver !== undefined) {
        this.owners[handOver.shard] = handOver.to
        this.moved += 1
      }
      isDone ||= open.length > 0 || handOver !== undefined
    }
    return isDone
  }

  settle(): void {
    for (let steps = 0; this.step(); steps++) if (steps > 100) throw new Error('It does not settle')
  }

  kill(name: string): void {
    this.alive = this.alive.filter(({ node }) => node !== name)
    for (const [shard, owner] of this.owners.entries()) if (owner === name) this.owners[shard] = undefined
  }

  count(name: string): number {
    return this.owners.filter((owner) => owner === name).length
  }
}

describe('nodes of which none is ready', () => {
  it('have one of them own all shards, and which does not change with those that join', () => {
    const cluster = new Cluster(8, unready('a'))
    cluster.settle()
    expect(cluster.count('a')).toBe(8)
    cluster.alive = unready(...names)
    cluster.settle()
    expect([cluster.count('a'), cluster.moved]).toEqual([8, 0])
  })

  it('bring together what two of them have taken at once, at the one that has more', () => {
    const cluster = new Cluster(5, unready('a', 'b'))
    cluster.owners.splice(0, 5, 'a', 'b', 'b', 'b', 'a')
    cluster.settle()
    expect([cluster.count('b'), cluster.moved]).toEqual([5, 2])
  })

  it('have one own all that has not just started, where there is such a one and nobody owns any', () => {
    const shards = [seen(undefined), seen(undefined)]
    for (const name of names) {
      const alive = unready(...names).map((one) => ({ ...one, isSettled: one.node === name }))
      expect(ownersOf(alive, shards)).toEqual([name, name])
    }
  })

  it('go on with another one of them when the owner is gone', () => {
    const cluster = new Cluster(3, unready(...names))
    cluster.settle()
    const [first = ''] = cluster.owners
    cluster.kill(first ?? '')
    cluster.settle()
    expect(new Set(cluster.owners).size).toBe(1)
    expect(cluster.owners).not.toContain(first)
  })
})

describe('nodes that are ready', () => {
  it('own an even share each, and nothing moves any more', () => {
    for (const shards of [1, 2, 3, 4, 8, 16, 64]) {
      const cluster = new Cluster(shards, unready('a'))
      cluster.settle()
      cluster.alive = ready(...names)
      cluster.settle()
      const most = Math.ceil(shards / names.length)
      expect(names.every((name) => cluster.count(name) <= most)).toBe(true)
      expect(cluster.step()).toBe(false)
    }
  })

  it('get a shard at a time', () => {
    const shards = Array.from({ length: 8 }, () => seen('a', 'owned'))
    const alive = ready('a', 'b')
    const first = stepsOf({ node: 'a', alive, shards })
    expect(first.handOver?.to).toBe('b')
    const moving = shards.with(first.handOver?.shard ?? 0, seen('a', 'leaving'))
    expect(stepsOf({ node: 'a', alive, shards: moving }).handOver).toBeUndefined()
  })

  it('take over the shards of one that is gone, each those that are its own by now', () => {
    const cluster = new Cluster(12, ready(...names))
    cluster.settle()
    const before = [...cluster.owners]
    cluster.kill('a')
    cluster.step()
    const taken = before.flatMap((owner, shard) => (owner === 'a' ? [cluster.owners[shard]] : []))
    expect(new Set(taken)).toEqual(new Set(['b', 'c']))
    cluster.settle()
    expect([cluster.count('b'), cluster.count('c')]).toEqual([6, 6])
  })

  it('leave none to one that is not ready beside them', () => {
    const cluster = new Cluster(6, [...ready('a', 'b'), ...unready('c')])
    cluster.settle()
    expect([cluster.count('a'), cluster.count('b'), cluster.count('c')]).toEqual([3, 3, 0])
  })
})

describe('a shard', () => {
  const alive = ready(...names)
  const [owner = ''] = ownersOf(alive, [seen(undefined)])
  const [other = ''] = names.filter((name) => name !== owner)
  const opens = (node: string, shard: SeenShard) => stepsOf({ node, alive, shards: [shard] }).open.length > 0

  it('is opened by whom it belongs to, where it is free', () => {
    expect(opens(owner, seen(undefined))).toBe(true)
    expect(opens(other, seen(undefined))).toBe(false)
    expect(opens(owner, seen(other))).toBe(false)
    expect(opens(owner, seen(undefined, 'opening'))).toBe(false)
  })

  it('is opened by another one to whom it was offered, or where nobody takes it for long', () => {
    expect(opens(other, seen(undefined, 'followed', { isOffered: true }))).toBe(true)
    const after = (freeLeases: number) =>
      names.filter((name) => opens(name, seen(undefined, 'followed', { freeLeases })))
    expect(after(0.9)).toEqual([owner])
    // One node after the other.
    expect([after(2.1), after(3.1)].map((those) => those.length)).toEqual([2, 3])
    expect(opens(other, seen(owner, 'followed', { freeLeases: 9 }))).toBe(false)
  })

  it('is not given up while another one is opened', () => {
    const shards = [seen(owner, 'opening'), ...Array.from({ length: 5 }, () => seen(other, 'owned'))]
    expect(stepsOf({ node: other, alive, shards })).toMatchObject({ open: [], handOver: undefined })
  })
})

/** A cluster whose nodes hold two copies of each shard, and keep what they follow up to its log at once or later. */
class Copies {
  readonly #shards: number
  alive: string[]
  readonly places = new Map<string, ShardRole[]>()
  readonly owners: (string | undefined)[]
  /** Shards that nodes do not have up to their logs yet. */
  readonly behind = new Map<string, Set<number>>()

  constructor(shards: number, alive: string[]) {
    this.#shards = shards
    this.alive = []
    this.owners = Array.from({ length: shards }, () => undefined)
    for (const node of alive) this.join(node)
  }

  join(node: string): void {
    this.alive.push(node)
    this.places.set(
      node,
      Array.from({ length: this.#shards }, () => 'elsewhere' as const),
    )
    this.behind.set(node, new Set())
  }

  kill(node: string): void {
    this.alive = this.alive.filter((one) => one !== node)
    for (const [shard, owner] of this.owners.entries()) if (owner === node) this.owners[shard] = undefined
  }

  held(node: string): number[] {
    const places = this.places.get(node) ?? []
    return [...places.keys()].filter(
      (shard) => places[shard] !== 'elsewhere' && this.behind.get(node)?.has(shard) !== true,
    )
  }

  stepOf(node: string) {
    const places = this.places.get(node) ?? []
    return nextSteps({
      node,
      copies: 2,
      alive: this.alive.map((one) => ({ node: one, isReady: true, isSettled: true, holds: this.held(one) })),
      shards: places.map((place, shard) =>
        seen(place === 'elsewhere' ? unknownOwner : this.owners[shard], place),
      ),
    })
  }

  /** @param isSlow whether what is followed from now on is behind its log */
  settle(isSlow = false): void {
    for (let steps = 0; ; steps++) {
      if (steps > 200) throw new Error('It does not settle')
      let isDone = false
      for (const node of this.alive) {
        const { open, handOver, follow, unfollow } = this.stepOf(node)
        const places = this.places.get(node) ?? []
        for (const shard of follow) {
          places[shard] = 'followed'
          if (isSlow) this.behind.get(node)?.add(shard)
        }
        for (const shard of unfollow) places[shard] = 'elsewhere'
        for (const shard of open) {
          places[shard] = 'owned'
          this.owners[shard] = node
        }
        if (handOver !== undefined) {
          places[handOver.shard] = 'followed'
          const others = this.places.get(handOver.to) ?? []
          expect(others[handOver.shard]).toBe('followed')
          others[handOver.shard] = 'owned'
          this.owners[handOver.shard] = handOver.to
        }
        isDone ||= open.length + follow.length + unfollow.length > 0 || handOver !== undefined
      }
      if (!isDone) return
    }
  }

  copies(): number[] {
    return this.owners.map(
      (_owner, shard) => this.alive.filter((node) => this.held(node).includes(shard)).length,
    )
  }
}

describe('copies of shards', () => {
  const four = ['a', 'b', 'c', 'd']

  it('are at two nodes each, and each node owns its share', () => {
    const cluster = new Copies(16, four)
    cluster.settle()
    expect(cluster.copies()).toEqual(cluster.owners.map(() => 2))
    for (const node of four) expect(cluster.owners.filter((owner) => owner === node)).toHaveLength(4)
  })

  it('take over at once where the owner dies, and are made anew', () => {
    const cluster = new Copies(16, four)
    cluster.settle()
    const before = [...cluster.owners]
    const holders = cluster.owners.map((_owner, shard) =>
      cluster.alive.filter((node) => cluster.held(node).includes(shard)),
    )
    cluster.kill('a')
    // Who has to make a copy first takes nothing over.
    cluster.settle(true)
    for (const [shard, owner] of cluster.owners.entries())
      if (before[shard] === 'a') expect(holders[shard]).toContain(owner)
    for (const behind of cluster.behind.values()) behind.clear()
    cluster.settle()
    expect(cluster.copies()).toEqual(cluster.owners.map(() => 2))
    const counts = cluster.alive.map((node) => cluster.owners.filter((owner) => owner === node).length)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
  })

  it('are made by whoever is left where all holders died', () => {
    const cluster = new Copies(16, four)
    cluster.settle()
    for (const node of ['a', 'b', 'c']) cluster.kill(node)
    cluster.settle()
    expect(new Set(cluster.owners)).toEqual(new Set(['d']))
  })

  it('are followed by a node that joins before it is ready, and moved to it then', () => {
    const cluster = new Copies(16, ['a', 'b', 'c'])
    cluster.settle()
    cluster.join('d')
    const alive = cluster.alive.map((node) => ({
      node,
      isReady: node !== 'd',
      isSettled: true,
      holds: cluster.held(node),
    }))
    const shards = cluster.owners.map(() => seen(unknownOwner, 'elsewhere'))
    const { follow, open } = nextSteps({ node: 'd', copies: 2, alive, shards })
    expect(open).toEqual([])
    expect(follow.length).toBeGreaterThanOrEqual(4)
    cluster.settle()
    expect(cluster.owners.filter((owner) => owner === 'd')).toHaveLength(4)
  })

  it('stay where nobody knows who owns the shard, and are removed only where nobody is to hold them', () => {
    const alive = ['a', 'b', 'c', 'd'].map((node) => ({
      node,
      isReady: true,
      isSettled: true,
      holds: everything,
    }))
    const steps = (node: string, shard: SeenShard) => nextSteps({ node, copies: 1, alive, shards: [shard] })
    const [owner = ''] = ownersOf(alive, [seen(undefined)])
    const other = four.find((name) => name !== owner) ?? ''
    expect(steps(other, seen(unknownOwner)).unfollow).toEqual([])
    expect(steps(other, seen(undefined)).unfollow).toEqual([])
    expect(steps(other, seen(owner)).unfollow).toEqual([0])
    expect(steps(owner, seen(other)).unfollow).toEqual([])
    const left = seen(unknownOwner, 'elsewhere', { isLeft: true })
    expect(steps(other, left)).toMatchObject({ remove: [0], follow: [] })
    expect(steps(owner, left)).toMatchObject({ remove: [], follow: [0] })
  })
})

it('does not say who should own shards while none is ready and owners are unknown', () => {
  expect(ownersOf(unready(...names), [seen('a'), seen(unknownOwner)])).toEqual([undefined, undefined])
})
