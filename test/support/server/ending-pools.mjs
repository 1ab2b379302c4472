/**
 * Closes thread pools repeatedly while their threads start: `node ending-pools.mjs ROUNDS`. Prints `fine` at
 * the end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { ThreadPool } from '../../../dist/src/dispatch/pools/thread-pool.js'

// It has many modules, so that loading takes time.
const file = new URL('../../../dist/workers/stores.js', import.meta.url)

async function endAfter(ms) {
  const pool = new ThreadPool({ name: 'ending', file, threads: 1, niced: false, idleMs: 0 })
  const begun = pool.run({}, { name: 'begin', deadlineMs: 60_000 }).catch(() => undefined)
  await pause(ms)
  await pool.close()
  await begun
}

const rounds = Number(process.argv[2])
for (let round = 0; round < rounds; round++) {
  // All moments of a start, three pools in parallel.
  const times = [0, 1, 2].map((nth) => 30 + (500 * (round + nth / 3)) / rounds)
  await Promise.all(times.map(endAfter))
}
console.log('fine')
