import { expect, it } from 'vitest'
import { boundedCache } from '../../../src/base/bounded-cache.js'

it('evicts the least recently used entry when it is full', () => {
  const cache = boundedCache<string, number>(2)
  cache.set('a', 1)
  cache.set('b', 2)
  expect(cache.get('a')).toBe(1)
  cache.set('c', 3)
  expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2])
})
