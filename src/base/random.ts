import { randomFillSync } from 'node:crypto'

/** Gives `count` unpredictable bytes. Handed in wherever chance is used, so that tests fix it. */
export type RandomBytes = (count: number) => Uint8Array

const POOL_BYTES = 8192

/**
 * The system's generator behind a pool: a salt a record would otherwise cost a call into the kernel each.
 * Every byte of the pool is given out once.
 */
export function pooledRandom(): RandomBytes {
  const pool = Buffer.allocUnsafeSlow(POOL_BYTES)
  let used = POOL_BYTES
  return (count) => {
    if (count > POOL_BYTES) return randomFillSync(Buffer.allocUnsafeSlow(count))
    if (used + count > POOL_BYTES) {
      randomFillSync(pool)
      used = 0
    }
    // A copy, not a view: a view would be overwritten by the next refill.
    const bytes = Buffer.from(pool.subarray(used, used + count))
    used += count
    return bytes
  }
}
