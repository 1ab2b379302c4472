import { join } from 'node:path'
import { prepareLoad } from '../load.mjs'
import { agentNames, recordBody, writeRequests } from '../records.mjs'
import { call, countRecords, createAgents, credential, startProduct } from '../server.mjs'
import { inTurn, startEcho } from './alternation.mjs'

const AGENTS = 100
const REQUESTS = 2_000
const settings = [
  { connections: 64, target: { ratio: 0.2 } },
  { connections: 512, target: { ratio: 0.3 } },
]

/**
 * Single durable writes over 100 agents against the echo. Every answered write must be found counted afterwards.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function writes(bench) {
  const agents = agentNames('writer', AGENTS)
  const requests = writeRequests(agents, { count: REQUESTS, headers: credential })
  const load = prepareLoad(requests, { generator: bench.plan.generator, directory: bench.directory })
  const product = await startProduct(join(bench.directory, 'writes'))
  const echo = await startEcho()
  try {
    await createAgents(product.url, agents)
    await checkOneWrite(product.url, agents[0])
    const measured = []
    for (const { connections, target } of settings) {
      bench.tell(`single writes, ${connections} connections`)
      const before = await countRecords(product.url, agents)
      const turn = await inTurn(bench, {
        product: { url: product.url, load },
        ceiling: { url: echo.url, load },
        connections,
      })
      const recorded = (await countRecords(product.url, agents)) - before
      checkCounts({ ...turn, recorded, inFlight: (bench.plan.rounds + 1) * connections })
      const { value, ceiling, ratio, also } = turn
      const name = `durable writes, ${connections} connections`
      measured.push({ name, value, unit: 'writes/s', ceiling, ratio, target, also })
    }
    return measured
  } finally {
    await Promise.all([product.stop(), echo.stop()])
  }
}

/** The write whose answer is read closely; the load only counts its answers. */
async function checkOneWrite(url, agent) {
  const data = recordBody(1)
  const written = await call(`${url}/v1/agents/${agent}/records`, { body: { data }, status: 201 })
  const read = await call(`${url}/v1/agents/${agent}/records/${written.content_hash}`)
  const same = Object.entries(data).every(([name, value]) => read.payload[name] === value)
  if (!same || !/^[0-9a-f]{128}$/.test(written.signature))
    throw new Error('The write is not the record read back')
}

/** When a generator stops, each of its connections can have one write in flight whose answer it never reads. */
function checkCounts({ answered, recorded, inFlight }) {
  if (recorded >= answered && recorded <= answered + inFlight) return
  throw new Error(`${answered} writes were answered and ${recorded} recorded`)
}
