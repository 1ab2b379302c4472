/** The result of a rank test of two samples. */
export interface RankTest {
  /** Pairs in which the value of the first sample is larger; ties count one half. */
  u: number
  /** Standard deviations from the expected value for equal distributions. */
  z: number
  /** The two-sided p-value. */
  p: number
}

/**
 * The two-sided rank test of Mann and Whitney (1947), with the normal approximation and corrections for ties
 * and for continuity. It only depends on the order of values, so that a few slow ones on a busy machine have
 * little influence.
 * @param one at least 8 values, as in `other`; the approximation needs as many
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
    // Ranks start at 1; ties get their mean rank.
    rankSum += firsts * ((from + 1 + to) / 2)
    tieTerm += (to - from) ** 3 - (to - from)
  }
  const u = rankSum - (n * (n + 1)) / 2
  const deviation = Math.sqrt(((n * m) / 12) * (total + 1 - tieTerm / (total * (total - 1))))
  const distance = Math.max(0, Math.abs(u - (n * m) / 2) - 0.5)
  const z = deviation === 0 ? 0 : distance / deviation
  return { u, z, p: complementaryError(z / Math.SQRT2) }
}

/** erfc for x ≥ 0, with a relative error below 1.2e-7 (Numerical Recipes, 6.2). */
function complementaryError(x: number): number {
  const t = 1 / (1 + x / 2)
  const coefficients = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
    -0.82215223, 0.17087277,
  ]
  const polynomial = coefficients.reduceRight((sum, coefficient) => sum * t + coefficient, 0)
  return t * Math.exp(-x * x + polynomial)
}
