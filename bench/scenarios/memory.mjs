import { join } from 'node:path'
import { agentNames } from '../records.mjs'
import { call, memoryOf, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'

const AGENTS_A_REQUEST = 10_000
const BYTES_TARGET = 300
const START_MS_TARGET = 2_000
/** Memory is stable when it changes by less than this between two readings. */
const STABLE_BYTES = 524_288
const POLL_MS = 400
const POLLS_MAX = 15

/**
 * Memory of idle agents and the start-up time with them: a server with many agents compared with an empty
 * one, both restarted and left idle.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function memory({ plan, directory, report }) {
  const empty = join(directory, 'memory-empty')
  const full = join(directory, 'memory-full')
  report(`${plan.idleAgents} idle agents`)
  await withServer(empty, async () => {})
  await withServer(full, ({ url }) => makeAgents(url, plan.idleAgents))
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const before = await withServer(empty, stableMemory)
    const starts = { ms: 0 }
    const after = await withServer(full, ({ startMs, pid }) => {
      starts.ms = startMs
      return stableMemory({ pid })
    })
    const each = (kind) => (after[kind] - before[kind]) / plan.idleAgents
    rounds.push({ bytes: each('resident'), anonymousBytes: each('anonymous'), startMs: starts.ms })
    report(
      `  round ${round}: ${Math.round(each('resident'))} bytes an agent, started in ${Math.round(starts.ms)} ms`,
    )
  }
  const of = (name) => median(rounds.map((round) => round[name]))
  const agents = plan.idleAgents
  return [
    {
      name: 'memory of an idle agent',
      value: of('bytes'),
      unit: 'bytes',
      target: { below: BYTES_TARGET },
      also: { agents, anonymous_bytes: Math.round(of('anonymousBytes')) },
    },
    {
      name: 'start with all agents',
      value: of('startMs'),
      unit: 'ms',
      target: { below: START_MS_TARGET },
      also: { agents },
    },
  ]
}

async function withServer(dataDirectory, use) {
  const server = await startProduct(dataDirectory)
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}

/** Creates agents with one record each, like the first readings of a fleet. */
async function makeAgents(url, count) {
  const names = agentNames('idle', count)
  for (let from = 0; from < count; from += AGENTS_A_REQUEST) {
    const some = names.slice(from, from + AGENTS_A_REQUEST)
    const ndjson = some.map((agent) => `${JSON.stringify({ agent, data: { at: agent } })}\n`).join('')
    const { accepted } = await call(`${url}/v1/ingest`, { ndjson })
    if (accepted !== some.length) throw new Error(`${some.length} agents were sent and ${accepted} accepted`)
  }
  const { total } = await call(`${url}/v1/agents?limit=1`)
  if (total < count) throw new Error(`Expected ${count} agents, got ${total}`)
}

/**
 * Memory of a process once it is stable.
 * @param {{pid: number}} server
 * @returns {Promise<{resident: number, anonymous: number}>}
 */
export async function stableMemory({ pid }) {
  let before = memoryOf(pid)
  for (let poll = 0; poll < POLLS_MAX; poll++) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    const now = memoryOf(pid)
    if (poll > 1 && Math.abs(now.resident - before.resident) < STABLE_BYTES) return now
    before = now
  }
  return before
}
