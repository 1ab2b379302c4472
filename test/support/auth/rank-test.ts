/** How two samples compare. */
export interface RankTest {
  /** How often a value of the first sample is above one of the second; ties count one half. */
  u: number
  /** Standard deviations from what equal distributions give. */
  z: number
  /** How likely samples of one distribution differ as much, either way. */
  p: number
}

/**
 * The two-sided rank test of Mann and Whitney (1947), by the normal approximation with corrections for ties and for
 * continuity. It asks only which values are larger, so single slow ones, as a busy machine gives, say little.
 * @param one at least 8 values, as many in `other`: fewer are not normal enough
 */
export function rankTest(one: readonly number[], other: readonly number[]): RankTest {
  const n = one.length
  const m = other.length
  const total = n + m
  const sorted = [
    ...one.map((value) => ({ value, first: true })),
    ...other.map((value) => ({ value, first: false })),
  ].toSorted((left, right) => left.value - right.value)
  let rankSum = 0
  let tieTerm = 0
  for (let from = 0, to = 0; from < total; from = to) {
    while (to < total && sorted[to]?.value === sorted[from]?.value) to++
    const firsts = sorted.slice(from, to).filter(({ first }) => first).length
    // Ranks count from 1; those that tie share their mean.
    rankSum += firsts * ((from + 1 + to) / 2)
    tieTerm += (to - from) ** 3 - (to - from)
  }
  const u = rankSum - (n * (n + 1)) / 2
  const deviation = Math.sqrt(((n * m) / 12) * (total + 1 - tieTerm / (total * (total - 1))))
  const distance = Math.max(0, Math.abs(u - (n * m) / 2) - 0.5)
  const z = deviation === 0 ? 0 : distance / deviation
  return { u, z, p: complementaryError(z / Math.SQRT2) }
}

/** erfc of a number that is not negative; wrong by less than 1.2e-7 of its value (Numerical Recipes, 6.2). */
function complementaryError(x: number): number {
  const t = 1 / (1 + x / 2)
  const coefficients = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277,
  ]
  const polynomial = coefficients.reduceRight((sum, coefficient) => sum * t + coefficient, 0)
  return t * Math.exp(-x * x + polynomial)
}
