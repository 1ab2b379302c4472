import { describe, expect, it } from 'vitest'
import {
  type Candidate,
  nextSteps,
  ownersOf,
  type Place,
  type SeenShard,
} from '../../../src/dispatch/cluster/places.js'

const names = ['a', 'b', 'c']
const ready = (...nodes: string[]): Candidate[] => nodes.map((node) => ({ node, isReady: true }))
const unready = (...nodes: string[]): Candidate[] => nodes.map((node) => ({ node, isReady: false }))
const seen = (
  owner: string | undefined,
  place: Place = 'followed',
  more: Partial<SeenShard> = {},
): SeenShard => ({
  place,
  owner,
  isOffered: false,
  isAbandoned: false,
  ...more,
})

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
      const { open, handOver } = nextSteps({ node, alive: this.alive, shards })
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
    const first = nextSteps({ node: 'a', alive, shards })
    expect(first.handOver?.to).toBe('b')
    const moving = shards.with(first.handOver?.shard ?? 0, seen('a', 'leaving'))
    expect(nextSteps({ node: 'a', alive, shards: moving }).handOver).toBeUndefined()
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
  const opens = (node: string, shard: SeenShard) =>
    nextSteps({ node, alive, shards: [shard] }).open.length > 0

  it('is opened by whom it belongs to, where it is free', () => {
    expect(opens(owner, seen(undefined))).toBe(true)
    expect(opens(other, seen(undefined))).toBe(false)
    expect(opens(owner, seen(other))).toBe(false)
    expect(opens(owner, seen(undefined, 'opening'))).toBe(false)
  })

  it('is opened by another one to whom it was offered, or where nobody takes it for long', () => {
    expect(opens(other, seen(undefined, 'followed', { isOffered: true }))).toBe(true)
    expect(opens(other, seen(undefined, 'followed', { isAbandoned: true }))).toBe(true)
    expect(opens(other, seen(owner, 'followed', { isAbandoned: true }))).toBe(false)
  })

  it('is not given up while another one is opened', () => {
    const shards = [seen(owner, 'opening'), ...Array.from({ length: 5 }, () => seen(other, 'owned'))]
    expect(nextSteps({ node: other, alive, shards })).toEqual({ open: [], handOver: undefined })
  })
})
