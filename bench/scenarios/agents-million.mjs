import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { signRate } from '../ceilings/sign-rate.mjs'
import { runScript } from '../child.mjs'
import { call, cpuMsOf, credential, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'
import { stableMemory } from './memory.mjs'

const generator = new URL('../generators/lines-process.mjs', import.meta.url)
const CONNECTIONS = 4
const LINES_A_REQUEST = 20_000
const STARTS = 3
const LOGGED_WITHIN_MS = 300_000
const RATE_TARGET = 10_000
const BYTES_TARGET = 300
const START_MS_TARGET = 3_000
/** Each agent's first write also creates its genesis record, and both are signed. */
const SIGNATURES_AN_AGENT = 2

/**
 * Very many agents created by ingest, each with one record: the rate of creation, the start-up time with
 * them, and the memory and disk space of each while the server is idle.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function agentsMillion({ plan, directory, report }) {
  const empty = join(directory, 'agents-million-empty')
  const full = join(directory, 'agents-million')
  const agents = plan.manyAgents
  report(`${agents} agents through ingest`)
  await withServer(empty, async () => {})
  const created = await withServer(full, async (server) => {
    const figures = await makeAgents(server, { agents, plan })
    // The server still logs a million new heads for a while after their creation and is not idle until then.
    await untilHeadsAreLogged(server, Date.now())
    return figures
  })
  report(`  ${Math.round(created.value)} agents/s, ${created.also.cpu_us} us of the server's CPU each`)
  const starts = []
  for (let round = 1; round <= STARTS; round++) {
    const before = await withServer(empty, stableMemory)
    const after = await withServer(full, async (server) => ({
      startMs: server.startMs,
      ...(await stableMemory(server)),
    }))
    const each = (kind) => (after[kind] - before[kind]) / agents
    starts.push({ resident: each('resident'), anonymous: each('anonymous'), startMs: after.startMs })
    report(
      `  start ${round}: ${Math.round(after.startMs)} ms, ${Math.round(each('resident'))} bytes an agent`,
    )
  }
  const of = (name) => median(starts.map((start) => start[name]))
  const stored = (diskBytes(full) - diskBytes(empty)) / agents
  const also = { agents }
  return [
    { name: 'agents made by ingest', unit: 'agents/s', ...created, also: { agents, ...created.also } },
    {
      name: `memory of one of ${agents} idle agents`,
      value: of('resident'),
      unit: 'bytes',
      target: { below: BYTES_TARGET },
      also: { agents, anonymous_bytes: Math.round(of('anonymous')) },
    },
    {
      name: `start with ${agents} agents`,
      value: of('startMs'),
      unit: 'ms',
      target: { below: START_MS_TARGET },
      also,
    },
    { name: 'an agent with one record on disk', value: stored, unit: 'bytes', also },
  ]
}

/** Waits until the server log has every head from before a time. */
async function untilHeadsAreLogged({ url }, momentMs) {
  const deadlineMs = Date.now() + LOGGED_WITHIN_MS
  while (Date.now() < deadlineMs) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    const [, seconds = '0'] = /^strandfast_log_complete_timestamp_seconds (\S+)$/m.exec(metrics) ?? []
    if (Number(seconds) * 1_000 >= momentMs) return
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error(`The server log did not have every head within ${LOGGED_WITHIN_MS} ms`)
}

async function withServer(dataDirectory, use) {
  const server = await startProduct(dataDirectory)
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}

async function makeAgents({ url, pid }, { agents, plan }) {
  const signatures = await signRate({ threads: 1, durationMs: plan.signMs })
  const cpuMs = cpuMsOf(pid)
  const { accepted, rejected, elapsedMs } = await runScript(generator, {
    url,
    prefix: 'agent',
    agents,
    from: 0,
    lines: agents,
    linesARequest: LINES_A_REQUEST,
    connections: CONNECTIONS,
    headers: credential,
    signing: 'record',
  })
  const cpuUs = ((cpuMsOf(pid) - cpuMs) * 1_000) / agents
  if (accepted !== agents || rejected !== 0)
    throw new Error(`${agents} lines were sent, ${accepted} accepted and ${rejected} rejected`)
  const { total } = await call(`${url}/v1/agents?limit=1`)
  // The default agent exists as well.
  if (total !== agents + 1) throw new Error(`Expected ${agents + 1} agents, got ${total}`)
  const value = (agents / elapsedMs) * 1_000
  const ceiling = (plan.cores * signatures) / SIGNATURES_AN_AGENT
  return {
    value,
    ceiling,
    ratio: value / ceiling,
    target: { value: RATE_TARGET },
    also: { cpu_us: Number(cpuUs.toFixed(1)) },
  }
}

/** The disk space of a directory, bytes. */
function diskBytes(directory) {
  return Number.parseInt(execFileSync('du', ['-s', '--block-size=1', directory], { encoding: 'utf8' }), 10)
}
