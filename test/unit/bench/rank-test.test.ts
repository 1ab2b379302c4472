import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../scripts/crash-loop/seeded-random.mjs'
import { rankTest } from '../../support/auth/rank-test.js'

/** Times like those of a server: a minimum, noise and some slow ones. */
function samples(count: number, random: () => number, shift = 0): number[] {
  return Array.from(
    { length: count },
    () => 20 + shift + random() * 4 + (random() < 0.05 ? 50 * random() : 0),
  )
}

describe('the rank test', () => {
  it('matches a published example without ties', () => {
    // The example of SciPy's mannwhitneyu, method="asymptotic".
    const { u, p } = rankTest([19, 22, 16, 29, 24], [20, 11, 17, 12])
    expect(u).toBe(17)
    expect(p).toBeCloseTo(0.111_346_886_533_140_4, 6)
  })

  it('corrects for ties', () => {
    // By hand: ranks 1, 3, 3 against 3, 5, 6; variance 9/12 (7 - 24/30); distance 3.5 - 0.5.
    const { u, z, p } = rankTest([1, 2, 2], [2, 3, 4])
    expect(u).toBe(1)
    expect(z).toBeCloseTo(3 / Math.sqrt(4.65), 12)
    expect(p).toBeCloseTo(0.164_163, 4)
  })

  it('is symmetric', () => {
    const [one, other] = [
      [3, 1, 4, 1, 5, 9],
      [2, 6, 5, 3, 5],
    ]
    expect(rankTest(one, other).p).toBe(rankTest(other, one).p)
  })

  it('finds no difference if all values are equal', () => {
    expect(rankTest([7, 7, 7], [7, 7]).p).toBeCloseTo(1, 6)
  })

  it('has the right false-positive rate', () => {
    const random = seededRandom(1947)
    const tests = Array.from({ length: 2_000 }, () => rankTest(samples(50, random), samples(50, random)).p)
    const share = (below: number) => tests.filter((p) => p < below).length / tests.length
    // Three standard deviations of a share of 2,000 draws.
    expect(Math.abs(share(0.01) - 0.01)).toBeLessThan(0.007)
    expect(Math.abs(share(0.5) - 0.5)).toBeLessThan(0.034)
  })

  it('finds a shift of half the noise in samples of 200', () => {
    const random = seededRandom(200)
    for (let round = 0; round < 50; round++) {
      expect(rankTest(samples(200, random, 2), samples(200, random)).p).toBeLessThan(1e-6)
    }
  })
})
