import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, writeRequests } from '../records.mjs'
import { createAgents, credential, startProduct } from '../server.mjs'
import { alternate, startEcho, startNodeEcho } from './alternation.mjs'

const AGENTS = 100
const REQUESTS = 2_000
const CONNECTIONS = 512

/**
 * Single durable writes by node:http, compared with uWebSockets.js and with a bare server of node:http.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function engines(bench) {
  const agents = agentNames('writer', AGENTS)
  const requests = writeRequests(agents, { count: REQUESTS, headers: credential })
  const load = prepareLoad(requests, { generator: bench.plan.generator, directory: bench.directory })
  const started = await Promise.all([
    startProduct(join(bench.directory, 'engine-node'), { SERVICE_HTTP_ENGINE: 'node' }),
    startProduct(join(bench.directory, 'engine-uws'), { SERVICE_HTTP_ENGINE: 'uws' }),
    startEcho(),
    startNodeEcho(),
  ])
  const [byNode, byUws, echo, nodeEcho] = started
  try {
    await createAgents(byNode.url, agents)
    await createAgents(byUws.url, agents)
    const withLoad = ({ url }) => ({ url, load })
    const compared = async (name, product, { ceiling, target }) => {
      bench.report(name)
      const turn = await alternate(bench, {
        product: withLoad(product),
        ceiling: withLoad(ceiling),
        connections: CONNECTIONS,
      })
      const { value, ratio, also } = turn
      return {
        name,
        value,
        unit: 'requests/s',
        ceiling: turn.ceiling,
        ratio,
        also,
        ...(target && { target }),
      }
    }
    return [
      await compared('durable writes by node:http, by those by uWebSockets.js', byNode, {
        ceiling: byUws,
        target: { ratio: 0.6 },
      }),
      await compared('durable writes by node:http, of a bare node:http', byNode, { ceiling: nodeEcho }),
      await compared('a bare node:http, by a bare uWebSockets.js', nodeEcho, { ceiling: echo }),
    ]
  } finally {
    await Promise.all(started.map((one) => one.stop()))
  }
}
