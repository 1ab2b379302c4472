import { join } from 'node:path'
import { countRecords, createAgents, readMetric, startProduct } from '../server.mjs'
import { median } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'

const CONNECTIONS = 512
const START_MS_TARGET = 2_000
/** The share of a load after which its server is killed. */
const KILLED_AT = 0.7

/**
 * The start of a server that was killed under load, until it listens, compared with the start on a directory
 * without agents after an orderly stop. Every write that was answered before the kill must be stored.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function crashStart(bench) {
  const { plan, directory, report } = bench
  const { agents, load } = singleWrites(bench)
  const data = join(directory, 'crash-start')
  const empty = join(directory, 'crash-start-empty')
  report('start after a kill')
  await withServer(data, ({ url }) => createAgents(url, agents))
  // The first start creates secrets and stores, which the other directory has already: only later starts are
  // comparable.
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
    report(`  round ${number}: ${Math.round(round.startMs)} ms, empty ${Math.round(emptyMs)} ms, ${found}`)
  }
  return [figureOf(rounds, recorded)]
}

/** The slowest start of all rounds, because the length of the log depends on when the kill happens. */
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
      // Null if the product has no log.
      replayed_commits: slowest.replayed ?? null,
      records,
    },
  }
}

/** Kills a server with SIGKILL while it is under load. Returns the number of answered writes. */
async function killUnderLoad({ data, load, seconds }) {
  const server = await startProduct(data)
  const killed = async () => {
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000 * KILLED_AT))
    await server.kill()
  }
  // Requests that fail after the kill are expected.
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
