import { fileURLToPath } from 'node:url'
import { startServer } from '../child.mjs'
import { runCleanly } from '../load.mjs'
import { makeTableNamed, singles } from '../peers/postgresql.mjs'
import { agentNames } from '../records.mjs'
import { cpuMsOf, cpuMsOfAll } from '../server.mjs'
import { against, median, rounded } from '../statistics.mjs'
import { singleWrites } from '../writers.mjs'
import { alternate } from './alternation.mjs'
import { AGENTS, uploadAll } from './ingest.mjs'

const insertServer = fileURLToPath(new URL('../peers/insert-server.mjs', import.meta.url))
const settings = [
  { connections: 64, insert: 0.5, server: 1.2 },
  { connections: 512, insert: 1.3, server: 1.6 },
]
const insertedTable = 'inserted'
const INGEST_TARGET = 2.5
const INGEST_CLIENTS = 64

/**
 * A node over a database, by what the same database does alone: INSERTs of pgbench, and INSERTs of a
 * node:http server. The CPU time of each process shows how many nodes one database can serve.
 * @param {{bench: import('./alternation.mjs').Bench, node: {url: string, pid: number}, database: object}} run
 */
export async function inserts({ bench, node, database }) {
  const { load } = singleWrites(bench)
  const { plan, report } = bench
  const measured = []
  // Rows of the other server must not be counted as rows of pgbench.
  await database.query(makeTableNamed(insertedTable))
  const other = await startServer([insertServer, database.url, insertedTable])
  try {
    for (const { connections, insert: insertTarget, server: serverTarget } of settings) {
      report(`single writes, ${connections} connections, by INSERTs of as many clients of pgbench`)
      const [contender] = singles(database)({ connections })
      const shape = { connections, seconds: plan.seconds }
      await contender.measure(plan.seconds)
      await runCleanly(load, node.url, { connections, seconds: plan.warmUpSeconds })
      const rounds = []
      const costs = []
      for (let round = 1; round <= plan.rounds; round++) {
        const before = cpuOf({ node, database })
        const { perSecond: value, requests } = await runCleanly(load, node.url, shape)
        costs.push(perThousand(before, cpuOf({ node, database }), requests))
        const { value: ceiling } = await contender.measure(plan.seconds)
        rounds.push({ value, ceiling })
        reportRound(report, round, { value, ceiling })
      }
      measured.push({
        name: `writes of a node over a database, ${connections} connections, by INSERTs of pgbench`,
        unit: 'writes/s',
        ...against(rounds),
        target: { ratio: insertTarget },
        also: costOf(costs),
      })
      report(`the same by a server of node:http that INSERTs, ${connections} connections`)
      const product = { url: node.url, load }
      const ceiling = { url: other.url, load }
      const { value, ceiling: found, ratio, also } = await alternate(bench, { product, ceiling, connections })
      measured.push({
        name: `writes of a node over a database, ${connections} connections, by a server of node:http that INSERTs`,
        value,
        unit: 'writes/s',
        ceiling: found,
        ratio,
        target: { ratio: serverTarget },
        also,
      })
    }
  } finally {
    await other.stop()
  }
  measured.push(await ingested({ bench, node, database }))
  return measured
}

async function ingested({ bench: { plan, report }, node, database }) {
  report('NDJSON ingest, a signature a record, by INSERTs of 64 clients of pgbench')
  const agents = agentNames('feed', AGENTS)
  const [contender] = singles(database)({ connections: INGEST_CLIENTS })
  await contender.measure(plan.seconds)
  const rounds = []
  const costs = []
  for (let round = 1; round <= plan.rounds; round++) {
    const before = cpuOf({ node, database })
    const value = await uploadAll(node.url, agents, { lines: plan.ingestLines, signing: 'record' })
    costs.push(perThousand(before, cpuOf({ node, database }), plan.ingestLines * agents.length))
    const { value: ceiling } = await contender.measure(plan.seconds)
    rounds.push({ value, ceiling })
    reportRound(report, round, { value, ceiling })
  }
  return {
    name: `ingest of a node over a database, by INSERTs of ${INGEST_CLIENTS} clients of pgbench`,
    unit: 'records/s',
    ...against(rounds),
    target: { ratio: INGEST_TARGET },
    also: costOf(costs),
  }
}

/** CPU time of the node, of the database, and of its standby, milliseconds. */
function cpuOf({ node, database }) {
  return [cpuMsOf(node.pid), ...database.pids.map(cpuMsOfAll)]
}

function perThousand(before, after, records) {
  return after.map((ms, nth) => (1_000 * (ms - (before[nth] ?? 0))) / records)
}

/**
 * CPU time of 1,000 records, and how many nodes with a busy processor each keep one processor of the database
 * busy.
 */
function costOf(costs) {
  const of = (nth) => median(costs.map((one) => one[nth]))
  const [node, primary, standby] = [of(0), of(1), of(2)]
  return {
    node_cpu_ms_per_1000: rounded(node),
    database_cpu_ms_per_1000: rounded(primary),
    standby_cpu_ms_per_1000: rounded(standby),
    nodes_a_database_core_feeds: rounded(node / primary),
  }
}

function reportRound(report, round, { value, ceiling }) {
  const ratio = (value / ceiling).toFixed(3)
  report(`  round ${round}: ${Math.round(value)}/s of ${Math.round(ceiling)}/s, ${ratio}`)
}
