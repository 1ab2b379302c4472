import { runCleanly } from '../load.mjs'
import { initCluster, ownedBy, sharing, startNode } from '../nodes.mjs'
import { hasPostgresql, startDatabase } from '../peers/postgresql.mjs'
import { makeQuota } from '../quota.mjs'
import { countRecords, cpuMsOf, createAgents } from '../server.mjs'
import { against, median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'

const NAME = 'writes of three nodes with 20 % of a processor each, by one such node'
const SHARE = 0.2
const NODES = ['three_a', 'three_b', 'three_c']
const SHARDS = 6
/** Of the clients of each of three, who ask one node each: 64 together. */
const CONNECTIONS = [22, 21, 21]
/** Nodes share after three leases; and one that gets little of a processor must not be taken for dead. */
const LEASE_SECS = 5
const TARGET = 2.7
/** Each thread of each node compiles its code, which would take long within a quota: a write takes half as much after 20 s. */
const WARM_UPS = 10

/**
 * Three nodes that share the shards of a cluster, by one node that owns as many of another one. Each node has a quota of one
 * processor, and the database, its standby and the load have none: so the machine has as much for three nodes as three
 * machines would. The load is the same, spread over the nodes or sent to the one; writes to a shard of another node are passed on.
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
    // Without quotas they stop sooner.
    for (const quota of quotas) quota.remove()
    for (const node of nodes) await node.stop()
    await database.stop()
  }
}

/** @param {{nodes: {url: string, pid: number}[], quotas: import('../quota.mjs').Quota[]}} run the lone node is the last */
async function compared(bench, { nodes, quotas }) {
  const { plan, tell } = bench
  const { agents, load } = singleWrites(bench, SHARDS)
  const [three, one] = [nodes.slice(0, -1), nodes.slice(-1)]
  for (const [{ url }] of [three, one]) await createAgents(url, agents)
  tell('three nodes share their shards')
  await sharing(urlsOf(three), SHARDS)
  const before = await countRecords(three[0].url, agents)
  const run = (asked, seconds) => loaded(asked, { load, seconds })
  const warmUps = [
    await run(one, WARM_UPS * plan.warmUpSeconds),
    await run(three, WARM_UPS * plan.warmUpSeconds),
  ]
  for (const [nth, { pid }] of nodes.entries()) quotas[nth].add(pid)
  tell(NAME)
  warmUps.push(await run(one, plan.warmUpSeconds), await run(three, plan.warmUpSeconds))
  const rounds = []
  for (let round = 1; round <= plan.rounds; round++) {
    const [ofThree, ofOne] = [await run(three, plan.seconds), await run(one, plan.seconds)]
    const [value, ceiling] = [ofThree.perSecond, ofOne.perSecond]
    rounds.push({ value, ceiling, ofThree, ofOne })
    tell(
      `  round ${round}: ${Math.round(value)}/s of ${Math.round(ceiling)}/s, ${(value / ceiling).toFixed(3)}`,
    )
  }
  await shareStill(three)
  const answeredBy = [
    ...warmUps.filter(({ asked }) => asked === three),
    ...rounds.map(({ ofThree }) => ofThree),
  ]
  checkCounts({
    answered: sum(answeredBy.map(({ requests }) => requests)),
    recorded: (await countRecords(three[0].url, agents)) - before,
    inFlight: answeredBy.length * sum(CONNECTIONS),
  })
  return figureOf(rounds)
}

/** The load of 64 clients, spread over some nodes, and what each of these took of a processor meanwhile. */
async function loaded(asked, { load, seconds }) {
  const [startedMs, before] = [performance.now(), asked.map(({ pid }) => cpuMsOf(pid))]
  const parts = CONNECTIONS.map((connections, nth) =>
    runCleanly(load, asked[nth % asked.length].url, { connections, seconds }),
  )
  const results = await Promise.all(parts)
  const elapsedMs = performance.now() - startedMs
  return {
    asked,
    requests: sum(results.map(({ requests }) => requests)),
    perSecond: sum(results.map(({ perSecond }) => perSecond)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    processors: asked.map(({ pid }, nth) => (cpuMsOf(pid) - before[nth]) / elapsedMs),
  }
}

/** @throws {Error} when a shard has moved while it was measured */
async function shareStill(three) {
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
