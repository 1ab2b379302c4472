import { runCleanly } from '../load.mjs'

/**
 * Runs a load of single writes and checks that the answered ones are stored.
 * @param {{url: string, load: import('../load.mjs').Load, count: () => Promise<number>}} server `count`: the
 *   stored writes
 * @param {{connections: number, seconds: number}} shape
 * @returns {Promise<import('./rounds.mjs').Turn>}
 * @throws {Error} when an answer was wrong or an acknowledged write is not stored
 */
export async function countedWrites({ url, load, count }, shape) {
  const before = await count()
  const { requests, perSecond, p50Ms, p99Ms } = await runCleanly(load, url, shape)
  const stored = (await count()) - before
  // When a generator stops, each of its connections can have one write in flight whose answer it never reads.
  if (stored < requests || stored > requests + shape.connections)
    throw new Error(`${requests} writes were answered and ${stored} stored`)
  return { value: perSecond, p50Ms, p99Ms }
}
