import { join } from 'node:path'
import { call, startProductWithAuth } from '../server.mjs'
import { median } from '../statistics.mjs'
import { stableMemory } from './memory.mjs'

const BYTES_TARGET = 2_048
const START_MS_TARGET = 2_000
/** Organisms that are created in parallel. */
const CONCURRENT_CREATIONS = 32
/** Rounds at least: the difference is a few megabytes of a hundred, and single starts differ by up to two. */
const STARTS = 3
/**
 * The share of the namespaces that the smaller server has: without any it would not read its store at the
 * start.
 */
const FEW = 0.1

/**
 * Memory of idle auth namespaces and the start-up time with them: a server with many organisms that have one
 * compared with a server with few, both restarted alternately and left idle. Store pages that were read at
 * the start are resident too, but the kernel can drop them, so only anonymous memory counts.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function namespaces({ plan, directory, report }) {
  const few = join(directory, 'namespaces-few')
  const full = join(directory, 'namespaces-full')
  const count = plan.idleNamespaces
  report(`${count} idle auth namespaces`)
  await withServer(few, ({ url }) => makeNamespaces(url, count * FEW))
  await withServer(full, ({ url }) => makeNamespaces(url, count))
  const rounds = []
  for (let round = 1; round <= Math.max(plan.rounds, STARTS); round++) {
    const before = await withServer(few, stableMemory)
    const after = await withServer(full, async (server) => ({
      startMs: server.startMs,
      ...(await stableMemory(server)),
    }))
    const each = (kind) => (after[kind] - before[kind]) / (count - count * FEW)
    rounds.push({ resident: each('resident'), anonymous: each('anonymous'), startMs: after.startMs })
    report(
      `  round ${round}: ${Math.round(each('anonymous'))} bytes a namespace, started in ${Math.round(after.startMs)} ms`,
    )
  }
  const of = (name) => median(rounds.map((round) => round[name]))
  return [
    {
      name: 'memory of an idle namespace',
      value: of('anonymous'),
      unit: 'bytes',
      target: { below: BYTES_TARGET },
      also: { namespaces: count, resident_bytes: Math.round(of('resident')) },
    },
    {
      name: 'start with all namespaces',
      value: of('startMs'),
      unit: 'ms',
      target: { below: START_MS_TARGET },
      also: { namespaces: count },
    },
  ]
}

async function withServer(dataDirectory, use) {
  const server = await startProductWithAuth(dataDirectory)
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}

async function makeNamespaces(url, count) {
  const ids = Array.from({ length: count }, (_none, index) => `organism-${index}`)
  for (let from = 0; from < count; from += CONCURRENT_CREATIONS) {
    await Promise.all(ids.slice(from, from + CONCURRENT_CREATIONS).map((id) => makeNamespace(url, id)))
  }
  const { total } = await call(`${url}/v1/organisms?limit=1`)
  if (total !== count) throw new Error(`Expected ${count} organisms, got ${total}`)
}

async function makeNamespace(url, id) {
  await call(`${url}/v1/organisms`, { body: { organism_id: id, name: id }, status: 201 })
  const { agent_id: agent } = await call(`${url}/v1/organisms/${id}/auth/init`, { body: {}, status: 201 })
  if (agent !== `${id}::auth`) throw new Error(`Expected the agent ${id}::auth, got ${agent}`)
}
