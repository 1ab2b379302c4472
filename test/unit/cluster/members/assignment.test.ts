import { fc } from '../../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { assign } from '../../../../src/cluster/members/placement.js'

const someNodes = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 9 })
const someShards = fc.integer({ min: 1, max: 64 })

describe('the assignment of shards to nodes', () => {
  it('gives each shard one owner, each node its share, and copies to different nodes', () => {
    fc.assert(
      fc.property(someNodes, someShards, fc.integer({ min: 1, max: 4 }), (nodes, shards, copies) => {
        const assigned = assign(nodes, { shards, copies })
        expect(assigned).toHaveLength(shards)
        const counts = nodes.map((node) => assigned.filter(({ owner }) => owner === node).length)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
        for (const { owner, holders } of assigned) {
          expect(holders[0]).toBe(owner)
          expect(new Set(holders).size).toBe(Math.min(copies, nodes.length))
          expect(holders.every((node) => nodes.includes(node))).toBe(true)
        }
      }),
    )
  })

  it('is the same for all nodes that see the same members', () => {
    fc.assert(
      fc.property(someNodes, someShards, (nodes, shards) => {
        const options = { shards, copies: 2 }
        expect(assign(nodes.toReversed(), options)).toEqual(assign(nodes, options))
      }),
    )
  })

  it('moves few shards when a node leaves: its own, and those that even out the shares', () => {
    const nodes = ['a', 'b', 'c', 'd']
    const before = assign(nodes, { shards: 64, copies: 2 })
    for (const removed of nodes) {
      const left = nodes.filter((node) => node !== removed)
      const after = assign(left, { shards: 64, copies: 2 })
      const moved = after.filter(({ owner }, shard) => owner !== before[shard]?.owner).length
      expect(moved).toBeGreaterThanOrEqual(16)
      expect(moved).toBeLessThanOrEqual(32)
    }
  })
})
