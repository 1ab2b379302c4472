import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, recordBody } from '../records.mjs'
import { call, createAgents, credential, startProduct } from '../server.mjs'
import { alternate, startEcho } from './alternation.mjs'

const AGENTS = 100
const BATCH_RECORDS = 1_000
/** Long enough for every record to be read once before the rounds. */
const FILL_SECONDS = 8

/**
 * By default all records are in memory after their first read; without a cache each read goes to its shard.
 */
const settings = [
  { connections: 64, cached: true, target: { ratio: 0.45 } },
  { connections: 512, cached: true, target: { ratio: 0.45 } },
  { connections: 64, cached: false },
  { connections: 512, cached: false },
]

/**
 * Reads of records by hash, picked at random from all stored records, against the echo's GET.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function get(bench) {
  const { plan, directory, report } = bench
  const data = join(directory, 'get')
  const echo = await startEcho()
  try {
    report(`get by hash, storing ${plan.storedRecords} records`)
    const paths = await withProduct(data, {}, ({ url }) => store(url, plan.storedRecords))
    const requests = shuffled(paths).map((path) => ({ method: 'GET', path, headers: credential }))
    const load = prepareLoad(requests, { generator: plan.generator, directory })
    const measured = []
    for (const { connections, cached, target } of settings) {
      const env = cached ? {} : { SERVICE_RECORD_CACHE_BYTES: '0' }
      const turn = await withProduct(data, env, async ({ url }) => {
        if (cached) await load.run(url, { connections, seconds: FILL_SECONDS })
        const ceiling = { url: echo.url, load }
        return alternate(bench, { product: { url, load }, ceiling, connections })
      })
      const { value, ceiling, ratio, also } = turn
      const name = `get by hash${cached ? '' : ' from its shard'}, ${connections} connections`
      measured.push({
        name,
        value,
        unit: 'reads/s',
        ceiling,
        ratio,
        ...(target !== undefined && { target }),
        also: { ...also, records: paths.length },
      })
    }
    return measured
  } finally {
    await echo.stop()
  }
}

async function withProduct(data, env, use) {
  const product = await startProduct(data, env)
  try {
    return await use(product)
  } finally {
    await product.stop()
  }
}

/** Stores records in batches. Returns the path of each. */
export async function store(url, count) {
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

/** The Fisher–Yates shuffle. */
export function shuffled(values) {
  const order = [...values]
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    ;[order[at], order[other]] = [order[other], order[at]]
  }
  return order
}
