import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, recordBody } from '../records.mjs'
import { call, createAgents, credential, startProduct } from '../server.mjs'
import { inTurn, startEcho } from './alternation.mjs'

const AGENTS = 100
const BATCH_RECORDS = 1_000
const CONNECTIONS = [64, 512]

/**
 * Records by their hash, picked at random of all that are stored, against the echo's GET.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function get(bench) {
  const { plan, directory, tell } = bench
  const product = await startProduct(join(directory, 'get'))
  const echo = await startEcho()
  try {
    tell(`get by hash, storing ${plan.storedRecords} records`)
    const paths = await store(product.url, plan.storedRecords)
    await call(`${product.url}${paths[0]}`)
    const requests = shuffled(paths).map((path) => ({ method: 'GET', path, headers: credential }))
    const load = prepareLoad(requests, { generator: plan.generator, directory })
    const measured = []
    for (const connections of CONNECTIONS) {
      const turn = await inTurn(bench, {
        product: { url: product.url, load },
        ceiling: { url: echo.url, load },
        connections,
      })
      const { value, ceiling, ratio, also } = turn
      const name = `get by hash, ${connections} connections`
      const target = { ratio: 0.45 }
      measured.push({
        name,
        value,
        unit: 'reads/s',
        ceiling,
        ratio,
        target,
        also: { ...also, records: paths.length },
      })
    }
    return measured
  } finally {
    await Promise.all([product.stop(), echo.stop()])
  }
}

/** Stores records in batches. Gives the path of each. */
async function store(url, count) {
  const agents = agentNames('shelf', AGENTS)
  await createAgents(url, agents)
  const paths = []
  while (paths.length < count) {
    const agent = agents[(paths.length / BATCH_RECORDS) % agents.length]
    const records = Array.from({ length: BATCH_RECORDS }, (_, index) => ({
      data: recordBody(paths.length + index),
    }))
    const written = await call(`${url}/v1/agents/${agent}/records/batch`, { body: { records }, status: 201 })
    paths.push(...written.results.map(({ content_hash }) => `/v1/agents/${agent}/records/${content_hash}`))
  }
  return paths
}

/** Fisher and Yates. */
function shuffled(values) {
  const order = [...values]
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    ;[order[at], order[other]] = [order[other], order[at]]
  }
  return order
}
