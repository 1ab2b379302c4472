import { expect, it } from 'vitest'
import { backoffMs } from '../../../src/base/backoff.js'

const backoff = { firstMs: 100, maxMs: 5_000 }

it('doubles the delay with each failure, up to the longest', () => {
  const delays = [1, 2, 3, 6, 7, 1_000].map((failures) => backoffMs(backoff, failures))
  expect(delays).toEqual([100, 200, 400, 3_200, 5_000, 5_000])
})

it('draws the delay from its upper half', () => {
  expect([0, 0.5, 1].map((random) => backoffMs(backoff, 2, () => random))).toEqual([100, 150, 200])
})
