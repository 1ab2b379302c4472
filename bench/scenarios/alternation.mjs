import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { runCleanly } from '../load.mjs'
import { against, median } from '../statistics.mjs'

const echoScript = fileURLToPath(new URL('../ceilings/echo-server.mjs', import.meta.url))

/**
 * The context of a scenario.
 * @typedef {object} Bench
 * @property {import('../options.mjs').Plan} plan
 * @property {string} directory temporary, for data directories and lists of requests
 * @property {(text: string) => void} report shows progress
 */

const nodeEchoScript = fileURLToPath(new URL('../ceilings/node-echo-server.mjs', import.meta.url))

/** Starts the echo server, the ceiling of every request. */
export function startEcho() {
  return startServer([echoScript])
}

/** Starts the echo server of node:http. */
export function startNodeEcho() {
  return startServer([nodeEchoScript])
}

/**
 * A server and the load that is sent to it.
 * @typedef {{url: string, load: import('../load.mjs').Load}} LoadTarget
 */

/**
 * Measures product and ceiling alternately, so that both run at the same speed of the machine.
 * @param {Bench} bench
 * @param {{product: LoadTarget, ceiling: LoadTarget, connections: number}} setting
 * @returns {Promise<{value: number, ceiling: number, ratio: number, answered: number, also: object}>} per
 *   second; `answered`: requests that the product answered, warm-up included
 */
export async function alternate({ plan, report }, { product, ceiling, connections }) {
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
    report(
      `  round ${round}: ${Math.round(ofProduct.perSecond)}/s of ${Math.round(ofCeiling.perSecond)}/s, ${ratio}`,
    )
  }
  const also = {
    p50_ms: median(rounds.map(({ ofProduct }) => ofProduct.p50Ms)),
    p99_ms: median(rounds.map(({ ofProduct }) => ofProduct.p99Ms)),
  }
  return { ...against(rounds), answered, also }
}
