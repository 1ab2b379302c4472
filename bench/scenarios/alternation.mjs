import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { runCleanly } from '../load.mjs'
import { against, median } from '../statistics.mjs'

const echoScript = fileURLToPath(new URL('../ceilings/echo-server.mjs', import.meta.url))

/**
 * What a scenario works with.
 * @typedef {object} Bench
 * @property {import('../options.mjs').Plan} plan
 * @property {string} directory a temporary one, for data directories and lists of requests
 * @property {(text: string) => void} tell shows what goes on
 */

/** Starts the echo, the ceiling of every request. */
export function startEcho() {
  return startServer([echoScript])
}

/**
 * Measures product and echo in turn under one load, so that both meet the machine at the same speed.
 * @param {Bench} bench
 * @param {{load: import('../load.mjs').Load, product: string, echo: string, connections: number}} setting
 * @returns {Promise<{value: number, ceiling: number, ratio: number, answered: number, also: object}>} per second;
 *   `answered`: requests that the product answered, warm-up included
 */
export async function inTurn({ plan, tell }, { load, product, echo, connections }) {
  const shape = { connections, seconds: plan.seconds }
  const warmUp = { connections, seconds: plan.warmUpSeconds }
  await runCleanly(load, echo, warmUp)
  let answered = (await runCleanly(load, product, warmUp)).requests
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const ofProduct = await runCleanly(load, product, shape)
    const ofEcho = await runCleanly(load, echo, shape)
    answered += ofProduct.requests
    rounds.push({ value: ofProduct.perSecond, ceiling: ofEcho.perSecond, ofProduct })
    const ratio = (ofProduct.perSecond / ofEcho.perSecond).toFixed(3)
    tell(
      `  round ${round}: ${Math.round(ofProduct.perSecond)}/s of ${Math.round(ofEcho.perSecond)}/s, ${ratio}`,
    )
  }
  const also = {
    p50_ms: median(rounds.map(({ ofProduct }) => ofProduct.p50Ms)),
    p99_ms: median(rounds.map(({ ofProduct }) => ofProduct.p99Ms)),
  }
  return { ...against(rounds), answered, also }
}
