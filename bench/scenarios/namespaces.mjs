import { join } from 'node:path'
import { call, startProductWithAuth } from '../server.mjs'
import { median } from '../statistics.mjs'
import { settledMemory } from './memory.mjs'

const BYTES_TARGET = 2_048
const START_MS_TARGET = 2_000
/** Organisms that are made at once. */
const MADE_AT_ONCE = 32
/** Starts: the difference is a few megabytes of a hundred, and single starts differ by up to two. */
const STARTS = 3
/** Part of the namespaces that the other server has: with none at all it would not have read its store at the start. */
const FEW = 0.1

/**
 * Memory of idle auth namespaces and the time to start with them: a server with many organisms that have one against a
 * server with few, both started again, in turn, and left idle. Pages of the store that were read at the start are
 * resident too, but the kernel can drop them, so only the memory of the process itself counts.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function namespaces({ plan, directory, tell }) {
  const few = join(directory, 'namespaces-few')
  const full = join(directory, 'namespaces-full')
  const count = plan.idleNamespaces
  tell(`${count} idle auth namespaces`)
  await withServer(few, ({ url }) => makeNamespaces(url, count * FEW))
  await withServer(full, ({ url }) => makeNamespaces(url, count))
  const rounds = []
  for (let round = 1; round <= Math.max(plan.rounds, STARTS); round++) {
    const before = await withServer(few, settledMemory)
    const after = await withServer(full, async (server) => ({
      startMs: server.startMs,
      ...(await settledMemory(server)),
    }))
    const each = (kind) => (after[kind] - before[kind]) / (count - count * FEW)
    rounds.push({ resident: each('resident'), anonymous: each('anonymous'), startMs: after.startMs })
    tell(
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
  for (let from = 0; from < count; from += MADE_AT_ONCE) {
    await Promise.all(ids.slice(from, from + MADE_AT_ONCE).map((id) => makeNamespace(url, id)))
  }
  const { total } = await call(`${url}/v1/organisms?limit=1`)
  if (total !== count) throw new Error(`Expected ${count} organisms, got ${total}`)
}

async function makeNamespace(url, id) {
  await call(`${url}/v1/organisms`, { body: { organism_id: id, name: id }, status: 201 })
  const { agent_id: agent } = await call(`${url}/v1/organisms/${id}/auth/init`, { body: {}, status: 201 })
  if (agent !== `${id}::auth`) throw new Error(`Expected the agent ${id}::auth, got ${agent}`)
}
