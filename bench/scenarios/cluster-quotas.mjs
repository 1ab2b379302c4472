import { runCleanly } from '../load.mjs'
import { initCluster, ownedBy, startNode, untilShared } from '../nodes.mjs'
import { hasPostgresql, startDatabase } from '../peers/postgresql.mjs'
import { makeQuota } from '../quota.mjs'
import { countRecords, cpuMsOf, createAgents } from '../server.mjs'
import { against, median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'

const NAME = 'writes of three nodes with 20 % of a processor each, by one such node'
const SHARE = 0.2
const NODES = ['three_a', 'three_b', 'three_c']
const SHARDS = 6
/** Connections of each of three clients, one for each node: 64 together. */
const CONNECTIONS = [22, 21, 21]
/** Nodes share the shards after three leases; and a node with a small quota must not be taken for dead. */
const LEASE_SECS = 5
const TARGET = 2.7
/**
 * Each thread of each node compiles its code, which takes long within a quota: after 20 s a write takes half
 * as long.
 */
const WARM_UPS = 10

/**
 * Three nodes that share the shards of a cluster, by one node that owns the same number of shards of another
 * cluster. Each node has a quota of one processor; the database, its standby and the load have none, so the
 * machine gives three nodes as much as three machines would. The load is the same, spread over the nodes or
 * sent to the one node; a write to a shard of another node is forwarded.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterQuotas(bench) {
  if (!hasPostgresql()) return [{ name: NAME, notMeasured: 'no PostgreSQL' }]
  const quotas = []
  try {
    for (let nth = 0; nth <= NODES.length; nth++) quotas.push(makeQuota(`strandfast-bench-${nth}`, SHARE))
  } catch (error) {
    for (const quota of quotas) quota.remove()
    return [{ name: NAME, notMeasured: `no quotas of processors: ${error.message}` }]
  }
  const database = await startDatabase({ standbys: 1 })
  const nodes = []
  try {
    const start = async (cluster, names) => {
      const env = initCluster(await database.make(cluster), SHARDS)
      const settings = { ...env, SERVICE_CLUSTER_LEASE_SECS: String(LEASE_SECS) }
      for (const name of names) nodes.push(await startNode(name, settings, bench.directory))
    }
    await start('of_three', NODES)
    await start('of_one', ['lone'])
    return [await compared(bench, { nodes, quotas })]
  } finally {
    // Without quotas they stop faster.
    for (const quota of quotas) quota.remove()
    for (const node of nodes) await node.stop()
    await database.stop()
  }
}

/**
 * @param {{nodes: {url: string, pid: number}[], quotas: import('../quota.mjs').Quota[]}} run the last node is
 * the single one
 */
async function compared(bench, { nodes, quotas }) {
  const { plan, report } = bench
  const { agents, load } = singleWrites(bench, SHARDS)
  const [three, one] = [nodes.slice(0, -1), nodes.slice(-1)]
  for (const [{ url }] of [three, one]) await createAgents(url, agents)
  report('three nodes share their shards')
  await untilShared(urlsOf(three), SHARDS)
  const before = await countRecords(three[0].url, agents)
  const run = (targets, seconds) => loaded(targets, { load, seconds })
  const warmUps = [
    await run(one, WARM_UPS * plan.warmUpSeconds),
    await run(three, WARM_UPS * plan.warmUpSeconds),
  ]
  for (const [nth, { pid }] of nodes.entries()) quotas[nth].add(pid)
  report(NAME)
  warmUps.push(await run(one, plan.warmUpSeconds), await run(three, plan.warmUpSeconds))
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const [ofThree, ofOne] = [await run(three, plan.seconds), await run(one, plan.seconds)]
    const [value, ceiling] = [ofThree.perSecond, ofOne.perSecond]
    rounds.push({ value, ceiling, ofThree, ofOne })
    report(
      `  round ${round}: ${Math.round(value)}/s of ${Math.round(ceiling)}/s, ${(value / ceiling).toFixed(3)}`,
    )
  }
  await checkShares(three)
  const answeredBy = [
    ...warmUps.filter(({ targets }) => targets === three),
    ...rounds.map(({ ofThree }) => ofThree),
  ]
  checkCounts({
    answered: sum(answeredBy.map(({ requests }) => requests)),
    recorded: (await countRecords(three[0].url, agents)) - before,
    inFlight: answeredBy.length * sum(CONNECTIONS),
  })
  return figureOf(rounds)
}

/** Runs the load of 64 clients, spread over some nodes, and measures the CPU share of each node. */
async function loaded(targets, { load, seconds }) {
  const [startedMs, before] = [performance.now(), targets.map(({ pid }) => cpuMsOf(pid))]
  const parts = CONNECTIONS.map((connections, nth) =>
    runCleanly(load, targets[nth % targets.length].url, { connections, seconds }),
  )
  const results = await Promise.all(parts)
  const elapsedMs = performance.now() - startedMs
  return {
    targets,
    requests: sum(results.map(({ requests }) => requests)),
    perSecond: sum(results.map(({ perSecond }) => perSecond)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    processors: targets.map(({ pid }, nth) => (cpuMsOf(pid) - before[nth]) / elapsedMs),
  }
}

/** @throws {Error} when a shard has moved during the measurement */
async function checkShares(three) {
  const owned = await Promise.all(urlsOf(three).map(ownedBy))
  if (owned.some((shards) => shards !== SHARDS / NODES.length))
    throw new Error(`Expected three nodes to own ${SHARDS / NODES.length} shards each, they own ${owned}`)
}

function figureOf(rounds) {
  const of = (name) => rounds.map((round) => round[name])
  const p50Ms = (found) => median(found.map((one) => one.p50Ms))
  const processors = (found) => rounded(median(found.flatMap((one) => one.processors)))
  return {
    name: NAME,
    unit: 'writes/s',
    ...against(rounds),
    target: { ratio: TARGET },
    also: {
      p50_ms: p50Ms(of('ofThree')),
      p50_ms_of_one: p50Ms(of('ofOne')),
      processor_of_each: processors(of('ofThree')),
      processor_of_one: processors(of('ofOne')),
    },
  }
}

function urlsOf(nodes) {
  return nodes.map(({ url }) => url)
}

function sum(numbers) {
  return numbers.reduce((all, number) => all + number, 0)
}
