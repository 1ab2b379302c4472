/**
 * Random numbers from a seed (mulberry32), so that a failed run can be repeated.
 * @param {number} seed
 * @returns {() => number} numbers from 0 to below 1
 */
export function seededRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * An integer from `low` to `high`, inclusive.
 * @param {() => number} random
 * @param {number} low
 * @param {number} high
 */
export function between(random, low, high) {
  return low + Math.floor(random() * (high - low + 1))
}

/**
 * A random item.
 * @template T
 * @param {() => number} random
 * @param {readonly T[]} items
 * @returns {T}
 */
export function pick(random, items) {
  return items[Math.floor(random() * items.length)]
}

/**
 * Returns a function that picks items at random, each once before any of them again, so that a few picks
 * already have all items.
 * @template T
 * @param {() => number} random
 * @param {readonly T[]} items
 * @returns {() => T}
 */
export function balancedPick(random, items) {
  /** @type {T[]} */
  let left = []
  return () => {
    if (left.length === 0) left = [...items]
    const item = pick(random, left)
    left.splice(left.indexOf(item), 1)
    return item
  }
}
