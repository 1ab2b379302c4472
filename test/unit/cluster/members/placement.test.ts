import { describe, expect, it } from 'vitest'
import {
  type Candidate,
  nextSteps,
  ownersOf,
  type ShardRole,
  type PlacementView,
  type ObservedShard,
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
  role: ShardRole = 'followed',
  more: Partial<ObservedShard> = {},
): ObservedShard => ({
  role,
  owner,
  isOffered: false,
  freeLeases: 0,
  isStale: false,
  ...more,
})
/** The next steps of a node, if each node holds every shard. */
const stepsOf = (view: Omit<PlacementView, 'copies'>) => nextSteps({ copies: names.length, ...view })

/** A cluster in which each node executes its decisions immediately, and sees those of the others. */
class Cluster {
  readonly owners: (string | undefined)[]
  alive: Candidate[]
  /** Number of transfers between nodes. */
  moved = 0

  constructor(shards: number, alive: Candidate[]) {
    this.owners = Array.from({ length: shards }, () => undefined)
    this.alive = alive
  }

  /** Lets the nodes decide one after another. @returns whether anything changed */
  step(): boolean {
    let isDone = false
    for (const { node } of this.alive) {
      const shards = this.owners.map((owner) => seen(owner, owner === node ? 'owned' : 'followed'))
      const { open, transfer } = stepsOf({ node, alive: this.alive, shards })
      for (const shard of open) this.owners[shard] = node
      if (transfer !== undefined) {
        this.owners[transfer.shard] = transfer.to
        this.moved += 1
      }
      isDone ||= open.length > 0 || transfer !== undefined
    }
    return isDone
  }

  settle(): void {
    for (let rounds = 0; this.step(); rounds++)
      if (rounds > 100) throw new Error('The cluster does not settle')
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
  it('let one node own all shards, which does not change when others join', () => {
    const cluster = new Cluster(8, unready('a'))
    cluster.settle()
    expect(cluster.count('a')).toBe(8)
    cluster.alive = unready(...names)
    cluster.settle()
    expect([cluster.count('a'), cluster.moved]).toEqual([8, 0])
  })

  it('merge the shards that two of them have opened concurrently at the node that owns more', () => {
    const cluster = new Cluster(5, unready('a', 'b'))
    cluster.owners.splice(0, 5, 'a', 'b', 'b', 'b', 'a')
    cluster.settle()
    expect([cluster.count('b'), cluster.moved]).toEqual([5, 2])
  })

  it('prefer a node that has not just started, if no shard has an owner', () => {
    const shards = [seen(undefined), seen(undefined)]
    for (const name of names) {
      const alive = unready(...names).map((one) => ({ ...one, isSettled: one.node === name }))
      expect(ownersOf(alive, shards)).toEqual([name, name])
    }
  })

  it('let another node own all shards when the owner dies', () => {
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
  it('own an even share each, after which nothing moves', () => {
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

  it('get one shard at a time', () => {
    const shards = Array.from({ length: 8 }, () => seen('a', 'owned'))
    const alive = ready('a', 'b')
    const first = stepsOf({ node: 'a', alive, shards })
    expect(first.transfer?.to).toBe('b')
    const moving = shards.with(first.transfer?.shard ?? 0, seen('a', 'leaving'))
    expect(stepsOf({ node: 'a', alive, shards: moving }).transfer).toBeUndefined()
  })

  it('take over the shards of a dead node, each node its assigned ones', () => {
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

  it('own all shards if another node is not ready', () => {
    const cluster = new Cluster(6, [...ready('a', 'b'), ...unready('c')])
    cluster.settle()
    expect([cluster.count('a'), cluster.count('b'), cluster.count('c')]).toEqual([3, 3, 0])
  })
})

describe('a shard', () => {
  const alive = ready(...names)
  const [owner = ''] = ownersOf(alive, [seen(undefined)])
  const [other = ''] = names.filter((name) => name !== owner)
  const opens = (node: string, shard: ObservedShard) =>
    stepsOf({ node, alive, shards: [shard] }).open.length > 0

  it('is opened by its assigned owner if it is free', () => {
    expect(opens(owner, seen(undefined))).toBe(true)
    expect(opens(other, seen(undefined))).toBe(false)
    expect(opens(owner, seen(other))).toBe(false)
    expect(opens(owner, seen(undefined, 'opening'))).toBe(false)
  })

  it('is opened by a node to which it was offered, or by others after a delay', () => {
    expect(opens(other, seen(undefined, 'followed', { isOffered: true }))).toBe(true)
    const after = (freeLeases: number) =>
      names.filter((name) => opens(name, seen(undefined, 'followed', { freeLeases })))
    expect(after(0.9)).toEqual([owner])
    // One node after another.
    expect([after(2.1), after(3.1)].map((openers) => openers.length)).toEqual([2, 3])
    expect(opens(other, seen(owner, 'followed', { freeLeases: 9 }))).toBe(false)
  })

  it('is not transferred while another one is being opened', () => {
    const shards = [seen(owner, 'opening'), ...Array.from({ length: 5 }, () => seen(other, 'owned'))]
    expect(stepsOf({ node: other, alive, shards })).toMatchObject({ open: [], transfer: undefined })
  })
})

/**
 * A cluster whose nodes hold two copies of each shard, and whose followed copies catch up immediately or
 * later.
 */
class ClusterWithCopies {
  readonly #shards: number
  alive: string[]
  readonly roles = new Map<string, ShardRole[]>()
  readonly owners: (string | undefined)[]
  /** Shards whose copies lag behind their logs. */
  readonly lagging = new Map<string, Set<number>>()

  constructor(shards: number, alive: string[]) {
    this.#shards = shards
    this.alive = []
    this.owners = Array.from({ length: shards }, () => undefined)
    for (const node of alive) this.join(node)
  }

  join(node: string): void {
    this.alive.push(node)
    this.roles.set(
      node,
      Array.from({ length: this.#shards }, () => 'elsewhere' as const),
    )
    this.lagging.set(node, new Set())
  }

  kill(node: string): void {
    this.alive = this.alive.filter((one) => one !== node)
    for (const [shard, owner] of this.owners.entries()) if (owner === node) this.owners[shard] = undefined
  }

  held(node: string): number[] {
    const roles = this.roles.get(node) ?? []
    return [...roles.keys()].filter(
      (shard) => roles[shard] !== 'elsewhere' && this.lagging.get(node)?.has(shard) !== true,
    )
  }

  stepOf(node: string) {
    const roles = this.roles.get(node) ?? []
    return nextSteps({
      node,
      copies: 2,
      alive: this.alive.map((one) => ({ node: one, isReady: true, isSettled: true, holds: this.held(one) })),
      shards: roles.map((role, shard) =>
        seen(role === 'elsewhere' ? unknownOwner : this.owners[shard], role),
      ),
    })
  }

  /** @param isSlow whether newly followed copies lag behind their logs */
  settle(isSlow = false): void {
    for (let rounds = 0; ; rounds++) {
      if (rounds > 200) throw new Error('The cluster does not settle')
      let isDone = false
      for (const node of this.alive) {
        const { open, transfer, follow, unfollow } = this.stepOf(node)
        const roles = this.roles.get(node) ?? []
        for (const shard of follow) {
          roles[shard] = 'followed'
          if (isSlow) this.lagging.get(node)?.add(shard)
        }
        for (const shard of unfollow) roles[shard] = 'elsewhere'
        for (const shard of open) {
          roles[shard] = 'owned'
          this.owners[shard] = node
        }
        if (transfer !== undefined) {
          roles[transfer.shard] = 'followed'
          const others = this.roles.get(transfer.to) ?? []
          expect(others[transfer.shard]).toBe('followed')
          others[transfer.shard] = 'owned'
          this.owners[transfer.shard] = transfer.to
        }
        isDone ||= open.length + follow.length + unfollow.length > 0 || transfer !== undefined
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
    const cluster = new ClusterWithCopies(16, four)
    cluster.settle()
    expect(cluster.copies()).toEqual(cluster.owners.map(() => 2))
    for (const node of four) expect(cluster.owners.filter((owner) => owner === node)).toHaveLength(4)
  })

  it('take over immediately when the owner dies, and are restored', () => {
    const cluster = new ClusterWithCopies(16, four)
    cluster.settle()
    const before = [...cluster.owners]
    const holders = cluster.owners.map((_owner, shard) =>
      cluster.alive.filter((node) => cluster.held(node).includes(shard)),
    )
    cluster.kill('a')
    // A node that has to build a copy first takes nothing over.
    cluster.settle(true)
    for (const [shard, owner] of cluster.owners.entries())
      if (before[shard] === 'a') expect(holders[shard]).toContain(owner)
    for (const lagging of cluster.lagging.values()) lagging.clear()
    cluster.settle()
    expect(cluster.copies()).toEqual(cluster.owners.map(() => 2))
    const counts = cluster.alive.map((node) => cluster.owners.filter((owner) => owner === node).length)
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
  })

  it('are rebuilt by the remaining node when all holders died', () => {
    const cluster = new ClusterWithCopies(16, four)
    cluster.settle()
    for (const node of ['a', 'b', 'c']) cluster.kill(node)
    cluster.settle()
    expect(new Set(cluster.owners)).toEqual(new Set(['d']))
  })

  it('are followed by a new node before it is ready, and then transferred to it', () => {
    const cluster = new ClusterWithCopies(16, ['a', 'b', 'c'])
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

  it('are kept while the owner is unknown, and removed only if no role requires them', () => {
    const alive = ['a', 'b', 'c', 'd'].map((node) => ({
      node,
      isReady: true,
      isSettled: true,
      holds: everything,
    }))
    const stepsWith = (node: string, shard: ObservedShard) =>
      nextSteps({ node, copies: 1, alive, shards: [shard] })
    const [owner = ''] = ownersOf(alive, [seen(undefined)])
    const other = four.find((name) => name !== owner) ?? ''
    expect(stepsWith(other, seen(unknownOwner)).unfollow).toEqual([])
    expect(stepsWith(other, seen(undefined)).unfollow).toEqual([])
    expect(stepsWith(other, seen(owner)).unfollow).toEqual([0])
    expect(stepsWith(owner, seen(other)).unfollow).toEqual([])
    const stale = seen(unknownOwner, 'elsewhere', { isStale: true })
    expect(stepsWith(other, stale)).toMatchObject({ remove: [0], follow: [] })
    expect(stepsWith(owner, stale)).toMatchObject({ remove: [], follow: [0] })
  })
})

it('does not assign owners while no node is ready and owners are unknown', () => {
  expect(ownersOf(unready(...names), [seen('a'), seen(unknownOwner)])).toEqual([undefined, undefined])
})
