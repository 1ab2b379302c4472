/**
 * The median of some numbers; for an even count the mean of the middle two.
 * @param {number[]} values at least one
 * @returns {number}
 */
export function median(values) {
  if (values.length === 0) throw new Error('Expected at least one number')
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/**
 * A figure and its ceiling from rounds that measured both, one after the other. The ratio is the median of
 * the rounds' ratios, not the ratio of the medians: the machine's speed changes between rounds, but hardly
 * within one.
 * @param {{value: number, ceiling: number}[]} rounds
 * @returns {{value: number, ceiling: number, ratio: number}}
 */
export function against(rounds) {
  return {
    value: median(rounds.map(({ value }) => value)),
    ceiling: median(rounds.map(({ ceiling }) => ceiling)),
    ratio: median(rounds.map(({ value, ceiling }) => value / ceiling)),
  }
}

/**
 * The smallest value that is not exceeded by this share of all values (nearest rank).
 * @param {ArrayLike<number>} values at least one
 * @param {number} share above 0, at most 1
 * @returns {number}
 */
export function percentile(values, share) {
  if (values.length === 0) throw new Error('Expected at least one number')
  const sorted = Float64Array.from(values).sort()
  return sorted[Math.ceil(share * sorted.length) - 1]
}

/**
 * Rounds for display: to three digits below a thousand, to whole numbers above.
 * @param {number} value
 * @returns {number}
 */
export function rounded(value) {
  return Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(3))
}
