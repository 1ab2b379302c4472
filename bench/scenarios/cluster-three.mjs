import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { runCleanly } from '../load.mjs'
import { initCluster, startNode, untilShared } from '../nodes.mjs'
import { hasPostgresql, startDatabase } from '../peers/postgresql.mjs'
import { cpuMsOf, createAgents, memoryOf, startProduct } from '../server.mjs'
import { against, median, rounded } from '../statistics.mjs'
import { singleWrites } from '../writers.mjs'

const NAME = 'three nodes over a database'
const SHARDS = 3
const CONNECTIONS = [16, 64]
/** Shards are shared after three leases. */
const LEASE_SECS = 2
/** The lease as users have it: heartbeats and with them the cost of an idle node depend on it. */
const IDLE_LEASE_SECS = 10
const IDLE_PLAN = { seconds: 30, quickSeconds: 5 }

/**
 * Three nodes of one machine over a database with a synchronous standby, by one such node, and both by a
 * single server; and what a node costs that has nothing to do. The two processors serve all of them, both
 * database servers and the load, so three nodes cannot be faster than one here.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterThree(bench) {
  if (!hasPostgresql()) return [{ name: NAME, notMeasured: 'no PostgreSQL' }]
  const database = await startDatabase({ standbys: 1 })
  try {
    return [...(await idle({ bench, database })), ...(await writes({ bench, database }))]
  } finally {
    await database.stop()
  }
}

/** Processor time, memory and connections of each of three nodes without requests. */
async function idle({ bench, database }) {
  const { plan, directory, report } = bench
  report(`${NAME}, idle`)
  const env = {
    ...initCluster(await database.make('idle'), SHARDS),
    SERVICE_CLUSTER_LEASE_SECS: `${IDLE_LEASE_SECS}`,
  }
  const alone = await startProduct(join(directory, 'idle-alone'), { SERVICE_SHARDS: `${SHARDS}` })
  const nodes = await startAll('idle', { env, directory })
  try {
    await untilShared(urlsOf(nodes), SHARDS)
    const all = [alone, ...nodes]
    const before = all.map(({ pid }) => cpuMsOf(pid))
    const seconds = plan.quick ? IDLE_PLAN.quickSeconds : IDLE_PLAN.seconds
    await pause(seconds * 1_000)
    const [ofAlone, ...ofNodes] = all.map(({ pid }, index) => (cpuMsOf(pid) - before[index]) / seconds / 10)
    const connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'idle'"
    const resident = ({ pid }) => rounded(memoryOf(pid).resident / 2 ** 20)
    return [
      {
        name: 'processor time of an idle node of three, of one core',
        value: median(ofNodes),
        unit: '%',
        also: {
          single_server_percent: rounded(ofAlone),
          resident_mib: median(nodes.map(resident)),
          single_server_resident_mib: resident(alone),
          connections_of_all: Number(await database.psql('-c', connections)),
          shards: SHARDS,
        },
      },
    ]
  } finally {
    for (const one of [alone, ...nodes]) await one.stop()
  }
}

/** Each round starts the three kinds one after another, so that none takes time from another. */
async function writes({ bench, database }) {
  const { plan, directory, report } = bench
  const { agents, load } = singleWrites(bench, SHARDS)
  const settings = async (name) => ({
    ...initCluster(await database.make(name), SHARDS),
    SERVICE_CLUSTER_LEASE_SECS: `${LEASE_SECS}`,
  })
  const [three, one] = [await settings('three'), await settings('one')]
  const kinds = {
    single: async () => [await startProduct(join(directory, 'single'), { SERVICE_SHARDS: `${SHARDS}` })],
    one: async () => [await startNode('one', one, directory)],
    three: () => startAll('three', { env: three, directory }),
  }
  const rounds = CONNECTIONS.map(() => [])
  for (let round = 1; round <= plan.rounds; round++) {
    const measured = CONNECTIONS.map(() => ({}))
    for (const [kind, start] of Object.entries(kinds)) {
      const servers = await start()
      try {
        const urls = urlsOf(servers)
        if (kind === 'three') await untilShared(urls, SHARDS)
        if (round === 1) await createAgents(urls[0], agents)
        for (const [index, connections] of CONNECTIONS.entries())
          measured[index][kind] = await writesOf(urls, { load, connections, plan })
      } finally {
        for (const server of servers) await server.stop()
      }
    }
    for (const [index, of] of measured.entries()) {
      rounds[index].push(of)
      const text = Object.entries(of).map(([kind, perSecond]) => `${kind} ${Math.round(perSecond)}/s`)
      report(`  round ${round}: ${CONNECTIONS[index]} connections, ${text.join(', ')}`)
    }
  }
  return CONNECTIONS.flatMap((connections, index) => {
    const by = (value, ceiling) =>
      against(rounds[index].map((of) => ({ value: of[value], ceiling: of[ceiling] })))
    return [
      { name: `writes of ${NAME}, ${connections} connections, by one node`, ...by('three', 'one') },
      { name: `writes of one node, ${connections} connections, by a single server`, ...by('one', 'single') },
    ].map((figure) => ({ ...figure, unit: 'writes/s' }))
  })
}

/** Writes per second of all servers together; each gets its part of the connections. */
async function writesOf(urls, { load, connections, plan }) {
  const share = Math.round(connections / urls.length)
  const run = (seconds) =>
    Promise.all(urls.map((url) => runCleanly(load, url, { connections: share, seconds })))
  await run(plan.warmUpSeconds)
  return (await run(plan.seconds)).reduce((sum, { perSecond }) => sum + perSecond, 0)
}

/** Nodes of one cluster. The first owns all shards until they are shared. */
async function startAll(prefix, { env, directory }) {
  const nodes = []
  for (const number of [1, 2, 3]) nodes.push(await startNode(`${prefix}-${number}`, env, directory))
  return nodes
}

const urlsOf = (servers) => servers.map(({ url }) => url)
