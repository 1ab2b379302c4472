import { randomFillSync } from 'node:crypto'

/** Gives `count` unpredictable bytes. It is an argument wherever chance is used, so that tests can fix it. */
export type RandomBytes = (count: number) => Uint8Array

const POOL_BYTES = 8192

/**
 * The system's generator behind a pool: the salt of each record would otherwise cost a call into the kernel. Every byte
 * of the pool is given out once.
 */
export function pooledRandom(): RandomBytes {
  let pool = Buffer.alloc(0)
  let used = 0
  return (count) => {
    if (count > POOL_BYTES) return randomFillSync(Buffer.allocUnsafeSlow(count))
    if (used + count > pool.length) {
      // A new pool, not the old one again: the bytes that were given out are views of the old one.
      pool = randomFillSync(Buffer.allocUnsafeSlow(POOL_BYTES))
      used = 0
    }
    used += count
    return pool.subarray(used - count, used)
  }
}
