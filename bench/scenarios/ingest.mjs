import { join } from 'node:path'
import { signRate } from '../ceilings/sign-rate.mjs'
import { runScript } from '../child.mjs'
import { agentNames } from '../records.mjs'
import { countRecords, createAgents, credential, startProduct } from '../server.mjs'
import { against, rounded } from '../statistics.mjs'

const generator = new URL('../generators/ingest-process.mjs', import.meta.url)
export const AGENTS = 32
const CONNECTIONS = 8

const settings = [
  { signing: 'record', name: 'ingest, a signature a record', target: { ratio: 0.62 } },
  { signing: 'group', name: 'ingest, a signature a group', target: { ratio: 0.8 } },
]

/**
 * NDJSON of 230-byte bodies on eight connections, against the sign rate of one core times the cores.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function ingest(bench) {
  const { plan, report } = bench
  const agents = agentNames('feed', AGENTS)
  const product = await startProduct(join(bench.directory, 'ingest'))
  try {
    await createAgents(product.url, agents)
    report('NDJSON ingest')
    await uploadAll(product.url, agents, { lines: plan.ingestLines >> 1, signing: 'record' })
    const rounds = { record: [], group: [] }
    for (let round = 1; round <= plan.rounds; round++) {
      let before = await signRate({ threads: 1, durationMs: plan.signMs })
      for (const { signing } of settings) {
        const value = await uploadAll(product.url, agents, { lines: plan.ingestLines, signing })
        const after = await signRate({ threads: 1, durationMs: plan.signMs })
        const ceiling = plan.cores * ((before + after) / 2)
        before = after
        rounds[signing].push({ value, ceiling })
        const ratio = (value / ceiling).toFixed(3)
        report(
          `  round ${round}, signing=${signing}: ${Math.round(value)}/s of ${Math.round(ceiling)}/s, ${ratio}`,
        )
      }
    }
    const allCores = await signRate({ threads: plan.cores, durationMs: plan.signMs })
    const also = { signatures_all_cores: rounded(allCores) }
    return settings.map(({ signing, name, target }) => {
      return { name, unit: 'records/s', ...against(rounds[signing]), target, also }
    })
  } finally {
    await product.stop()
  }
}

/**
 * Uploads `lines` lines for each agent. Returns records a second. Throws unless each line became a record.
 */
export async function uploadAll(url, agents, { lines, signing }) {
  const before = await countRecords(url, agents)
  const task = { url, agents, lines, connections: CONNECTIONS, headers: credential, signing }
  const { accepted, rejected, elapsedMs } = await runScript(generator, task)
  const recorded = (await countRecords(url, agents)) - before
  const sent = lines * agents.length
  if (accepted !== sent || rejected !== 0 || recorded !== sent) {
    throw new Error(
      `${sent} lines were sent, ${accepted} accepted, ${rejected} rejected and ${recorded} recorded`,
    )
  }
  return (accepted / elapsedMs) * 1_000
}
