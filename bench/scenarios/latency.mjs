import { join } from 'node:path'
import { syncTimes } from '../ceilings/sync-times.mjs'
import { runCleanly } from '../load.mjs'
import { countRecords, createAgents, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'

const CONNECTIONS = [16, 64]
const TIMES_TARGET = 4
/** If a bare sync of the disk sometimes takes longer than this, the figure is that of the disk. */
const CALM_SYNC_P99_MS = 1

/**
 * How much longer than usual the slowest durable writes take: p99 by median, beside the p99 of a bare disk
 * sync.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<import('../report.mjs').Measured[]>}
 */
export async function latency(bench) {
  const { plan, directory, report } = bench
  const { agents, load } = singleWrites(bench)
  const product = await startProduct(join(directory, 'latency'))
  try {
    await createAgents(product.url, agents)
    const before = await countRecords(product.url, agents)
    const figures = []
    let [answered, inFlight] = [0, 0]
    for (const connections of CONNECTIONS) {
      report(`latency, ${connections} connections`)
      const run = async (seconds) => {
        const result = await runCleanly(load, product.url, { connections, seconds })
        answered += result.requests
        inFlight += connections
        return result
      }
      await run(plan.warmUpSeconds)
      const rounds = []
      for (let number = 1; number <= plan.rounds; number++) {
        const { p50Ms, p99Ms, maxMs } = await run(plan.seconds)
        const sync = syncTimes({ directory, durationMs: plan.syncMs })
        const syncs = { syncP50Ms: sync.p50Ms, syncP99Ms: sync.p99Ms }
        rounds.push({ p50Ms, p99Ms, maxMs, times: p99Ms / p50Ms, ...syncs })
        report(`  round ${number}: p99 ${p99Ms} ms by ${p50Ms} ms, p99 of a sync ${sync.p99Ms.toFixed(2)} ms`)
      }
      figures.push(figureOf(rounds, { connections, report }))
    }
    const recorded = (await countRecords(product.url, agents)) - before
    checkCounts({ answered, recorded, inFlight })
    return figures
  } finally {
    await product.stop()
  }
}

function figureOf(rounds, { connections, report }) {
  const of = (name) => median(rounds.map((round) => round[name]))
  const judged = of('syncP99Ms') < CALM_SYNC_P99_MS
  if (!judged)
    report(`  neither met nor missed: the disk's own sync has a p99 of ${CALM_SYNC_P99_MS} ms or more`)
  return {
    name: `p99 of durable writes by their median, ${connections} connections`,
    value: of('times'),
    unit: 'times',
    target: { below: TIMES_TARGET },
    judged,
    also: {
      p50_ms: of('p50Ms'),
      p99_ms: of('p99Ms'),
      max_ms: Math.max(...rounds.map(({ maxMs }) => maxMs)),
      sync_p50_ms: rounded(of('syncP50Ms')),
      sync_p99_ms: rounded(of('syncP99Ms')),
    },
  }
}
