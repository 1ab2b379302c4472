import { fc } from '../../support/fast-check.js'
import { describe, expect, it } from 'vitest'
import { shardOf } from '../../../src/strand/placement.js'

describe('the shard that owns an agent', () => {
  // Frozen: with other results, the strands of a data directory would not be found.
  it.each([
    ['default', 1, 0],
    ['default', 2, 0],
    ['default', 3, 2],
    ['default', 16, 12],
    ['a', 2, 1],
    ['a', 3, 0],
    ['a', 16, 3],
    ['sensor-1', 2, 1],
    ['sensor-1', 3, 1],
    ['sensor-1', 16, 5],
    ['sensor-2', 2, 1],
    ['sensor-2', 3, 2],
    ['sensor-2', 16, 9],
    ['sensor-10', 2, 0],
    ['sensor-10', 3, 2],
    ['sensor-10', 16, 4],
    ['org_1::members', 2, 1],
    ['org_1::members', 3, 2],
    ['org_1::members', 16, 9],
    ['org_1::auth', 2, 0],
    ['org_1::auth', 3, 0],
    ['org_1::auth', 16, 6],
    ['0', 2, 1],
    ['0', 3, 1],
    ['0', 16, 1],
    ['A.b_c-d', 2, 1],
    ['A.b_c-d', 3, 1],
    ['A.b_c-d', 16, 11],
    ['x'.repeat(128), 2, 0],
    ['x'.repeat(128), 3, 2],
    ['x'.repeat(128), 16, 12],
  ])('is fixed permanently: agent "%s" among %i shards is on %i', (name, shards, shard) => {
    expect(shardOf(name, shards)).toBe(shard)
  })

  it('is one of the shards for any name', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 16 }), (name, shards) => {
        const shard = shardOf(name, shards)
        expect(Number.isInteger(shard) && shard >= 0 && shard < shards).toBe(true)
      }),
    )
  })

  it('distributes names that differ in their last digits evenly', () => {
    const counts = Array.from({ length: 16 }, () => 0)
    for (let n = 0; n < 16_000; n++) {
      const shard = shardOf(`sensor-${n}`, 16)
      counts[shard] = (counts[shard] ?? 0) + 1
    }
    // Exactly even would be a thousand each.
    expect(Math.min(...counts)).toBeGreaterThan(800)
    expect(Math.max(...counts)).toBeLessThan(1_200)
  })
})
