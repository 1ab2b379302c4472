import { join } from 'node:path'
import { runScript } from '../child.mjs'
import { agentNames } from '../records.mjs'
import { countRecords, cpuMsOfFront, createAgents, credential, startProduct } from '../server.mjs'
import { against, median } from '../statistics.mjs'
import { AGENTS } from './ingest.mjs'

const generator = new URL('../generators/otlp-process.mjs', import.meta.url)
const CONNECTIONS = 8
/** Log records of a request, as exporters send them by default. */
const BATCH = 512
const RATIO_TARGET = 0.6
const FRONT_MS_TARGET = 2

/**
 * Log records of 300 bytes by OTLP in protobuf, against the same records as NDJSON, and the processor time of
 * the front for one request.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function otlp({ plan, directory, report }) {
  const agents = agentNames('otlp', AGENTS)
  const product = await startProduct(join(directory, 'otlp'))
  const batches = Math.max(1, Math.round(plan.ingestLines / BATCH))
  const send = (format) => sendAll(product, agents, { format, batches })
  try {
    await createAgents(product.url, agents)
    report('OTLP logs in protobuf')
    for (const format of ['ndjson', 'protobuf']) await send(format)
    const rounds = []
    const frontMs = { ndjson: [], protobuf: [] }
    for (let round = 1; round <= plan.rounds; round++) {
      const before = await send('ndjson')
      const own = await send('protobuf')
      const after = await send('ndjson')
      rounds.push({ value: own.rate, ceiling: (before.rate + after.rate) / 2 })
      frontMs.protobuf.push(own.frontMs)
      frontMs.ndjson.push(before.frontMs, after.frontMs)
      const { value, ceiling } = rounds.at(-1)
      report(
        `  round ${round}: ${Math.round(value)}/s, as NDJSON ${Math.round(ceiling)}/s, ` +
          `front ${own.frontMs.toFixed(2)} ms a request`,
      )
    }
    return [
      {
        name: 'log records by OTLP, a signature a group, by NDJSON',
        unit: 'records/s',
        ...against(rounds),
        target: { ratio: RATIO_TARGET },
      },
      {
        name: `processor time of the front for ${BATCH} log records of 300 bytes`,
        value: median(frontMs.protobuf),
        unit: 'ms',
        target: { below: FRONT_MS_TARGET },
        also: { ndjson_ms: Number(median(frontMs.ndjson).toFixed(2)) },
      },
    ]
  } finally {
    await product.stop()
  }
}

/**
 * Sends batches for each agent. @returns records a second, and the processor time of the front for a batch.
 * Throws unless each became a record.
 */
async function sendAll({ url, pid }, agents, { format, batches }) {
  const before = await countRecords(url, agents)
  const task = { url, agents, batches, size: BATCH, connections: CONNECTIONS, headers: credential, format }
  const frontBeforeMs = cpuMsOfFront(pid)
  const { elapsedMs } = await runScript(generator, task)
  const frontMs = (cpuMsOfFront(pid) - frontBeforeMs) / (batches * agents.length)
  const sent = batches * BATCH * agents.length
  const recorded = (await countRecords(url, agents)) - before
  if (recorded !== sent) throw new Error(`${sent} log records were sent, and ${recorded} recorded`)
  return { rate: (sent / elapsedMs) * 1_000, frontMs }
}
