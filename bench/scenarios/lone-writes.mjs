import { join } from 'node:path'
import { syncTimes } from '../ceilings/sync-times.mjs'
import { runCleanly } from '../load.mjs'
import { countRecords, createAgents, startProduct } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'
import { startEcho } from './alternation.mjs'

const TIMES_TARGET = 2
const NAME = 'median of a lone durable write, by those of an echo and a sync'

/**
 * Durable writes one after the other. A write takes at least as long as an echo and a write of 1 KiB with its
 * sync; the median write is compared with the sum of these two.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function loneWrites(bench) {
  if (bench.plan.generator !== 'wrk')
    return [{ name: NAME, notMeasured: 'autocannon only reports whole milliseconds: install wrk' }]
  const { agents, load } = singleWrites(bench)
  const product = await startProduct(join(bench.directory, 'lone-writes'))
  const echo = await startEcho()
  try {
    await createAgents(product.url, agents)
    bench.report('lone writes')
    const before = await countRecords(product.url, agents)
    const { rounds, answered } = await roundsOf(bench, { load, product, echo })
    const recorded = (await countRecords(product.url, agents)) - before
    checkCounts({ answered, recorded, inFlight: bench.plan.rounds + 1 })
    const of = (part, name) => rounded(median(rounds.map((round) => round[part][name])))
    return [
      {
        name: NAME,
        value: median(rounds.map(timesOf)),
        unit: 'times',
        target: { below: TIMES_TARGET },
        also: {
          p50_ms: of('write', 'p50Ms'),
          p99_ms: of('write', 'p99Ms'),
          echo_p50_ms: of('echoed', 'p50Ms'),
          echo_p99_ms: of('echoed', 'p99Ms'),
          sync_p50_ms: of('sync', 'p50Ms'),
          sync_p99_ms: of('sync', 'p99Ms'),
        },
      },
    ]
  } finally {
    await Promise.all([product.stop(), echo.stop()])
  }
}

async function roundsOf({ plan, directory, report }, { load, product, echo }) {
  const run = ({ url }, seconds) => runCleanly(load, url, { connections: 1, seconds })
  await run(echo, plan.warmUpSeconds)
  let answered = (await run(product, plan.warmUpSeconds)).requests
  const rounds = []
  for (let number = 1; number <= plan.rounds; number++) {
    const write = await run(product, plan.seconds)
    const echoed = await run(echo, plan.seconds)
    const sync = syncTimes({ directory, durationMs: plan.syncMs })
    answered += write.requests
    const round = { write, echoed, sync }
    rounds.push(round)
    const parts = Object.entries(round).map(([name, { p50Ms }]) => `${name} ${p50Ms.toFixed(3)} ms`)
    report(`  round ${number}: ${parts.join(', ')}: ${timesOf(round).toFixed(2)} times`)
  }
  return { rounds, answered }
}

function timesOf({ write, echoed, sync }) {
  return write.p50Ms / (echoed.p50Ms + sync.p50Ms)
}
