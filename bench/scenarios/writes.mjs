import { join } from 'node:path'
import { recordBody } from '../records.mjs'
import { call, countRecords, createAgents, startProduct } from '../server.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'
import { alternate, startEcho } from './alternation.mjs'

/** The target of 16 connections is compared with node:http and better-sqlite3 (bench/peers/workloads.mjs). */
const settings = [
  { connections: 16 },
  { connections: 64, target: { ratio: 0.22 } },
  { connections: 512, target: { ratio: 0.32 } },
]

/**
 * Single durable writes over 100 agents against the echo. The count afterwards must contain every answered
 * write.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function writes(bench) {
  const { agents, load } = singleWrites(bench)
  const product = await startProduct(join(bench.directory, 'writes'))
  const echo = await startEcho()
  try {
    await createAgents(product.url, agents)
    await checkOneWrite(product.url, agents[0])
    const measured = []
    for (const { connections, target } of settings) {
      bench.report(`single writes, ${connections} connections`)
      const before = await countRecords(product.url, agents)
      const turn = await alternate(bench, {
        product: { url: product.url, load },
        ceiling: { url: echo.url, load },
        connections,
      })
      const recorded = (await countRecords(product.url, agents)) - before
      checkCounts({ ...turn, recorded, inFlight: (bench.plan.rounds + 1) * connections })
      const { value, ceiling, ratio, also } = turn
      const name = `durable writes, ${connections} connections`
      measured.push({ name, value, unit: 'writes/s', ceiling, ratio, ...(target && { target }), also })
    }
    return measured
  } finally {
    await Promise.all([product.stop(), echo.stop()])
  }
}

/** Checks the answer to one write; the load only counts its answers. */
async function checkOneWrite(url, agent) {
  const data = recordBody(1)
  const written = await call(`${url}/v1/agents/${agent}/records`, { body: { data }, status: 201 })
  const read = await call(`${url}/v1/agents/${agent}/records/${written.content_hash}`)
  const same = Object.entries(data).every(([name, value]) => read.payload[name] === value)
  if (!same || !/^[0-9a-f]{128}$/.test(written.signature))
    throw new Error('The write is not the record read back')
}
