import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { runCleanly } from '../load.mjs'
import { initCluster, shardsOf, startNode } from '../nodes.mjs'
import { hasPostgresql, makeTable, singles, startDatabase } from '../peers/postgresql.mjs'
import { agentNames } from '../records.mjs'
import { countRecords, createAgents, startProduct } from '../server.mjs'
import { against, median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'
import { inserts } from './cluster-inserts.mjs'
import { forwarded } from './cluster-nodes.mjs'
import { alternate } from './alternation.mjs'
import { AGENTS, uploadAll } from './ingest.mjs'

const NAME = 'a node over a database'
/** So long that no shard moves to a second node during the measurements: that happens after three leases. */
const LONG_LEASE_SECS = 120
const settings = [
  { connections: 64, target: { ratio: 0.6 } },
  { connections: 512, target: { ratio: 0.7 } },
]
const INGEST_TARGET = 0.8
const COMMITS_TARGET = { writes: 30, ingest: 3 }
const LONE_TARGET = 1.5
/** PostgreSQL publishes its statistics with a delay. */
const STATISTICS_DELAY_MS = 2_000

/**
 * A node over a database with a synchronous standby on this machine, by a single server with the log in
 * files. The two processors serve the node, both database servers and the load, so these ratios are lower
 * than with two machines.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function cluster(bench) {
  if (!hasPostgresql()) return [{ name: NAME, notMeasured: 'no PostgreSQL' }]
  const shards = shardsOf(bench.plan)
  const { database, env, node } = await start(bench)
  const alone = await startProduct(join(bench.directory, 'alone'), { SERVICE_SHARDS: `${shards}` })
  const measured = []
  try {
    try {
      await database.query(makeTable)
      const run = { bench, database, node, alone, env }
      measured.push(...(await writes(run)), ...(await ingest(run)), ...(await lone(run)))
      measured.push(...(await forwarded(run)))
    } finally {
      await Promise.all([node.stop(), alone.stop()])
    }
    return measured
  } finally {
    await database.stop()
  }
}

/**
 * The same node, by what its database does alone.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterInserts(bench) {
  if (!hasPostgresql()) return [{ name: NAME, notMeasured: 'no PostgreSQL' }]
  const { database, node } = await start(bench)
  try {
    await database.query(makeTable)
    await createAgents(node.url, [...singleWrites(bench).agents, ...agentNames('feed', AGENTS)])
    return await inserts({ bench, database, node })
  } finally {
    await node.stop()
    await database.stop()
  }
}

/** A database with a synchronous standby, and a node over it. */
async function start({ plan, directory }) {
  const database = await startDatabase({ standbys: 1 })
  const env = {
    ...initCluster(database.url, shardsOf(plan)),
    SERVICE_CLUSTER_LEASE_SECS: `${LONG_LEASE_SECS}`,
  }
  return { database, env, node: await startNode('node', env, directory) }
}

async function writes({ bench, database, node, alone }) {
  const { agents, load } = singleWrites(bench)
  for (const { url } of [node, alone]) await createAgents(url, agents)
  const measured = []
  for (const { connections, target } of settings) {
    bench.report(`single writes, ${connections} connections`)
    const before = await countRecords(node.url, agents)
    const commits = await commitsOf(database)
    const product = { url: node.url, load }
    const turn = await alternate(bench, { product, ceiling: { url: alone.url, load }, connections })
    const recorded = (await countRecords(node.url, agents)) - before
    checkCounts({ ...turn, recorded, inFlight: (bench.plan.rounds + 1) * connections })
    const perThousand = (1_000 * ((await commitsOf(database)) - commits)) / recorded
    const { value, ceiling, ratio, also } = turn
    const name = `writes of ${NAME}, ${connections} connections, by those of a single server`
    measured.push({ name, value, unit: 'writes/s', ceiling, ratio, target, also })
    measured.push(commitsFigure(`${connections} connections`, perThousand, connections === 512 && 'writes'))
  }
  return measured
}

async function ingest({ bench, database, node, alone }) {
  const { plan, report } = bench
  const agents = agentNames('feed', AGENTS)
  for (const { url } of [node, alone]) await createAgents(url, agents)
  report('NDJSON ingest, a signature a record')
  const upload = ({ url }, lines) => uploadAll(url, agents, { lines, signing: 'record' })
  for (const one of [node, alone]) await upload(one, plan.ingestLines >> 1)
  const rounds = []
  const commits = await commitsOf(database)
  for (let round = 1; round <= plan.rounds; round++) {
    const value = await upload(node, plan.ingestLines)
    const ceiling = await upload(alone, plan.ingestLines)
    rounds.push({ value, ceiling })
    report(
      `  round ${round}: ${Math.round(value)}/s of ${Math.round(ceiling)}/s, ${(value / ceiling).toFixed(3)}`,
    )
  }
  const records = plan.rounds * plan.ingestLines * agents.length
  const perThousand = (1_000 * ((await commitsOf(database)) - commits)) / records
  const name = `ingest of ${NAME}, by that of a single server`
  return [
    { name, unit: 'records/s', ...against(rounds), target: { ratio: INGEST_TARGET } },
    commitsFigure('ingest', perThousand, 'ingest'),
  ]
}

/** The time that the database adds to a lone write, by the time of an INSERT. */
async function lone({ bench, database, node, alone }) {
  const { plan, report } = bench
  if (plan.generator !== 'wrk')
    return [
      {
        name: `a lone write of ${NAME}`,
        notMeasured: 'autocannon only reports whole milliseconds: install wrk',
      },
    ]
  const { load } = singleWrites(bench)
  const [insert] = singles(database)({ connections: 1 })
  const run = ({ url }, seconds) => runCleanly(load, url, { connections: 1, seconds })
  report('lone writes')
  for (const one of [node, alone]) await run(one, plan.warmUpSeconds)
  await insert.measure(plan.seconds)
  const rounds = []
  for (let number = 1; number <= plan.rounds; number++) {
    const [over, own] = [await run(node, plan.seconds), await run(alone, plan.seconds)]
    const inserted = await insert.measure(plan.seconds)
    const round = { node: over.p50Ms, alone: own.p50Ms, insert: inserted.p50Ms }
    rounds.push({ ...round, times: (round.node - round.alone) / round.insert })
    const parts = Object.entries(round).map(([name, ms]) => `${name} ${ms.toFixed(3)} ms`)
    report(`  round ${number}: ${parts.join(', ')}: ${rounds.at(-1).times.toFixed(2)} times`)
  }
  const of = (name) => rounded(median(rounds.map((round) => round[name])))
  return [
    {
      name: `a lone write of ${NAME}, less that of a single server, by an INSERT of pgbench`,
      value: median(rounds.map(({ times }) => times)),
      unit: 'times',
      target: { below: LONE_TARGET },
      also: { p50_ms: of('node'), alone_p50_ms: of('alone'), insert_p50_ms: of('insert') },
    },
  ]
}

function commitsFigure(of, value, kind) {
  const target = kind && { target: { below: COMMITS_TARGET[kind] } }
  return { name: `commits of the database, ${of}`, value, unit: 'per 1,000 records', ...target }
}

async function commitsOf(database) {
  await pause(STATISTICS_DELAY_MS)
  return Number(await database.psql('-c', 'SELECT sum(xact_commit) FROM pg_stat_database'))
}
