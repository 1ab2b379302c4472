import { randomFillSync } from 'node:crypto'

/** Returns `count` unpredictable bytes. Code takes it as an argument, so that tests can replace it. */
export type RandomBytes = (count: number) => Uint8Array

const POOL_BYTES = 8192

/** The system's random generator with a pool, which saves a system call for the salt of each record. */
export function pooledRandom(): RandomBytes {
  let pool = Buffer.alloc(0)
  let used = 0
  return (count) => {
    if (count > POOL_BYTES) return randomFillSync(Buffer.allocUnsafeSlow(count))
    if (used + count > pool.length) {
      // The old pool is not filled again, because returned bytes are views of it.
      pool = randomFillSync(Buffer.allocUnsafeSlow(POOL_BYTES))
      used = 0
    }
    used += count
    return pool.subarray(used - count, used)
  }
}
