import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, recordBody } from '../records.mjs'
import { call, createAgents, credential, startProduct } from '../server.mjs'
import { alternate, startEcho } from './alternation.mjs'

const AGENTS = 100
const RECORDS_EACH = 100
const ROWS = 20
const CONNECTIONS = 64

/**
 * The 20 latest records of an agent, cycling through 100 agents, against the echo of the same request.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function latest(bench) {
  const { plan, directory, report } = bench
  const agents = agentNames('page', AGENTS)
  const product = await startProduct(join(directory, 'latest'))
  const echo = await startEcho()
  try {
    report('latest')
    await createAgents(product.url, agents)
    const records = Array.from({ length: RECORDS_EACH }, (_, number) => ({ data: recordBody(number) }))
    for (const agent of agents) {
      await call(`${product.url}/v1/agents/${agent}/records/batch`, { body: { records }, status: 201 })
    }
    const body = { type: 'latest' }
    const page = await call(`${product.url}/v1/agents/${agents[0]}/query`, { body })
    if (page.records.length !== ROWS) throw new Error(`Expected ${ROWS} rows, got ${page.records.length}`)
    const headers = { ...credential, 'content-type': 'application/json' }
    const requests = agents.map((agent) => {
      return { method: 'POST', path: `/v1/agents/${agent}/query`, headers, body: JSON.stringify(body) }
    })
    const load = prepareLoad(requests, { generator: plan.generator, directory })
    const turn = await alternate(bench, {
      product: { url: product.url, load },
      ceiling: { url: echo.url, load },
      connections: CONNECTIONS,
    })
    const { value, ceiling, ratio, also } = turn
    return [
      { name: `latest ${ROWS}, ${CONNECTIONS} connections`, value, unit: 'pages/s', ceiling, ratio, also },
    ]
  } finally {
    await Promise.all([product.stop(), echo.stop()])
  }
}
