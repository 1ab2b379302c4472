import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { runCleanly } from '../load.mjs'
import { against, median } from '../statistics.mjs'

const echoScript = fileURLToPath(new URL('../ceilings/echo-server.mjs', import.meta.url))

/**
 * What a scenario needs.
 * @typedef {object} Bench
 * @property {import('../options.mjs').Plan} plan
 * @property {string} directory a temporary one, for data directories and lists of requests
 * @property {(text: string) => void} tell shows what goes on
 */

const nodeEchoScript = fileURLToPath(new URL('../ceilings/node-echo-server.mjs', import.meta.url))

/** Starts the echo, the ceiling of every request. */
export function startEcho() {
  return startServer([echoScript])
}

/** Starts the echo of node:http. */
export function startNodeEcho() {
  return startServer([nodeEchoScript])
}

/**
 * A server and its load.
 * @typedef {{url: string, load: import('../load.mjs').Load}} Asked
 */

/**
 * Measures product and ceiling in turn, so that both meet the machine at the same speed.
 * @param {Bench} bench
 * @param {{product: Asked, ceiling: Asked, connections: number}} setting
 * @returns {Promise<{value: number, ceiling: number, ratio: number, answered: number, also: object}>} per second;
 *   `answered`: requests that the product answered, warm-up included
 */
export async function inTurn({ plan, tell }, { product, ceiling, connections }) {
  const shape = { connections, seconds: plan.seconds }
  const warmUp = { connections, seconds: plan.warmUpSeconds }
  const run = ({ load, url }, how) => runCleanly(load, url, how)
  await run(ceiling, warmUp)
  let answered = (await run(product, warmUp)).requests
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const ofProduct = await run(product, shape)
    const ofCeiling = await run(ceiling, shape)
    answered += ofProduct.requests
    rounds.push({ value: ofProduct.perSecond, ceiling: ofCeiling.perSecond, ofProduct })
    const ratio = (ofProduct.perSecond / ofCeiling.perSecond).toFixed(3)
    tell(
      `  round ${round}: ${Math.round(ofProduct.perSecond)}/s of ${Math.round(ofCeiling.perSecond)}/s, ${ratio}`,
    )
  }
  const also = {
    p50_ms: median(rounds.map(({ ofProduct }) => ofProduct.p50Ms)),
    p99_ms: median(rounds.map(({ ofProduct }) => ofProduct.p99Ms)),
  }
  return { ...against(rounds), answered, also }
}
