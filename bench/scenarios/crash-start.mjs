import { join } from 'node:path'
import { countRecords, createAgents, readMetric, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'

const CONNECTIONS = 512
const START_MS_TARGET = 2_000
/** The share of a load after which its server is killed. */
const KILLED_AT = 0.7

/**
 * The start of a server that was killed under load, up to the line that it listens, against the start of a directory
 * without agents that was stopped. Every write that was answered before the kill must be there.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function crashStart(bench) {
  const { plan, directory, tell } = bench
  const { agents, load } = singleWrites(bench)
  const data = join(directory, 'crash-start')
  const empty = join(directory, 'crash-start-empty')
  tell('start after a kill')
  await withServer(data, ({ url }) => createAgents(url, agents))
  // Its first start makes secrets and stores, which the other one has: its further starts are what to compare with.
  await withServer(empty, async () => {})
  const rounds = []
  let recorded = 0
  for (let number = 1; number <= plan.rounds; number++) {
    const emptyMs = await withServer(empty, ({ startMs }) => startMs)
    const answered = await killUnderLoad({ data, load, seconds: plan.seconds })
    const round = await withServer(data, async ({ url, startMs }) => {
      const now = await countRecords(url, agents)
      checkCounts({ answered, recorded: now - recorded, inFlight: CONNECTIONS })
      recorded = now
      return { startMs, emptyMs, replayed: await readMetric(url, 'strandfast_replayed_commits') }
    })
    rounds.push(round)
    const found = `${round.replayed ?? 'no'} commits replayed`
    tell(`  round ${number}: ${Math.round(round.startMs)} ms, empty ${Math.round(emptyMs)} ms, ${found}`)
  }
  return [figureOf(rounds, recorded)]
}

/** The slowest start of all rounds: how much the log holds is a matter of when the kill comes. */
function figureOf(rounds, records) {
  const slowest = rounds.toSorted((a, b) => a.startMs - a.emptyMs - (b.startMs - b.emptyMs)).at(-1)
  return {
    name: 'slowest start after a kill under load, beyond that of an empty directory',
    value: slowest.startMs - slowest.emptyMs,
    unit: 'ms',
    target: { below: START_MS_TARGET },
    also: {
      start_ms: Math.round(slowest.startMs),
      empty_start_ms: Math.round(slowest.emptyMs),
      median_ms: Math.round(median(rounds.map(({ startMs, emptyMs }) => startMs - emptyMs))),
      // Null where the product has no log.
      replayed_commits: slowest.replayed ?? null,
      records,
    },
  }
}

/** Kills a server by SIGKILL while it is under load. Gives the writes that were answered. */
async function killUnderLoad({ data, load, seconds }) {
  const server = await startProduct(data)
  const killed = async () => {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000 * KILLED_AT))
    await server.kill()
  }
  // What fails after the kill is no fault.
  const [{ requests }] = await Promise.all([
    load.run(server.url, { connections: CONNECTIONS, seconds }),
    killed(),
  ])
  return requests
}

async function withServer(data, use) {
  const server = await startProduct(data)
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}
