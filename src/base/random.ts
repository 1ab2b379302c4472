import { randomFillSync } from 'node:crypto'

/** Gives `count` unpredictable bytes. Handed in wherever chance is used, so that tests fix it. */
export type RandomBytes = (count: number) => Uint8Array

const POOL_BYTES = 8192

/**
 * The system's generator behind a pool: a salt a record would otherwise cost a call into the kernel each.
 * Every byte of the pool is given out once.
 */
export function pooledRandom(): RandomBytes {
  let pool = Buffer.alloc(0)
  let used = 0
  return (count) => {
    if (count > POOL_BYTES) return randomFillSync(Buffer.allocUnsafeSlow(count))
    if (used + count > pool.length) {
      // A new pool, not the old one again: what was given out are views of it.
      pool = randomFillSync(Buffer.allocUnsafeSlow(POOL_BYTES))
      used = 0
    }
    used += count
    return pool.subarray(used - count, used)
  }
}
