import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { startServer } from '../child.mjs'
import { gapFigure, gapOf, gapText } from '../gap-writer.mjs'
import { initCluster, shardsOf, startNode } from '../nodes.mjs'
import { hasPostgresql, startDatabase } from '../peers/postgresql.mjs'
import { agentNames } from '../records.mjs'
import { countRecords, createAgents } from '../server.mjs'
import { median, rounded } from '../statistics.mjs'
import { checkCounts, singleWrites } from '../writers.mjs'
import { alternate } from './alternation.mjs'

const delayScript = fileURLToPath(new URL('../delay-server.mjs', import.meta.url))
const PROMOTED = 'where the primary is killed and a standby promoted'
const PROMOTION_TARGET_MS = 3_000
/** The lease of a node whose primary is killed, seconds. */
const LEASE_SECS = 10
const LINK_SHARDS = 16
const LINK_CONNECTIONS = 512
/** In each direction, so that a round trip takes 1 ms. */
const DELAY_MS = 0.5
const LINK_TARGET = 0.85
const LINK_NAME = `writes with a 1 ms round trip to the database, ${LINK_SHARDS} shards, by those without delay, ${LINK_CONNECTIONS} connections`
const PINGS = 200
/** Usual warm-ups: each of many threads compiles its code, on the same processors. */
const WARM_UPS = 4

/**
 * How the failover of a cluster's database and the delay to it affect writes.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterEngine(bench) {
  if (!hasPostgresql()) return [{ name: LINK_NAME, notMeasured: 'no PostgreSQL' }]
  return [await promotions(bench), await delayedLink(bench)]
}

/** How long writers of all shards wait while a standby is promoted to primary. */
async function promotions({ plan, directory, report }) {
  report(PROMOTED)
  const gaps = []
  for (let round = 1; round <= plan.rounds; round++) {
    gaps.push(await promotion(`promotion-${round}`, { shards: shardsOf(plan), directory }))
    report(`  round ${round}: ${gapText(gaps.at(-1))}`)
  }
  return gapFigure(PROMOTED, gaps, PROMOTION_TARGET_MS)
}

async function promotion(name, { shards, directory }) {
  const database = await startDatabase({ standbys: 2 })
  try {
    const env = initCluster(database.urlOfAll, shards)
    const settings = { ...env, SERVICE_CLUSTER_LEASE_SECS: String(LEASE_SECS) }
    const node = await startNode(name, settings, directory)
    const standbys = []
    try {
      for (const { url, port } of database.standbys) standbys.push({ port, client: await connected(url) })
      return await gapOf({ urls: [node.url], agents: agentNames('promotion', shards, shards) }, async () => {
        await database.kill()
        await promote(standbys)
      })
    } finally {
      await Promise.all(standbys.map(({ client }) => client.end()))
      await node.stop()
    }
  } finally {
    await database.stop()
  }
}

/** Promotes the standby that has received most, and lets the other one follow it. */
async function promote(standbys) {
  const text = "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::text AS received"
  const standbyPositions = await Promise.all(
    standbys.map(async ({ port, client }) => {
      const { rows } = await client.query(text)
      return { port, client, received: BigInt(rows[0].received) }
    }),
  )
  const [first, second] = standbyPositions.sort((one, other) => (one.received > other.received ? -1 : 1))
  const follow = async () => {
    const from = `host=127.0.0.1 port=${first.port} user=bench`
    await second.client.query(`ALTER SYSTEM SET primary_conninfo = '${from}'`)
    await second.client.query('SELECT pg_reload_conf()')
  }
  await Promise.all([first.client.query('SELECT pg_promote(true, 60)'), follow()])
}

/**
 * Two equal nodes over databases of one server, each behind such a proxy; only one of the proxies delays. The
 * proxies share the processors with the nodes.
 */
async function delayedLink(bench) {
  const { plan, directory, report } = bench
  report(LINK_NAME)
  const { agents, load } = singleWrites(bench, LINK_SHARDS)
  const database = await startDatabase({ standbys: 1 })
  const started = []
  const startBehindProxy = async (name, delayMs) => {
    const proxy = await startServer([delayScript, new URL(database.url).port, String(delayMs)])
    started.push(proxy)
    const url = (await database.make(name)).replace(/:\d+\//, `:${new URL(proxy.url).port}/`)
    const node = await startNode(name, initCluster(url, LINK_SHARDS), directory)
    started.push(node)
    await createAgents(node.url, agents)
    return { url: node.url, load, roundTripMs: await roundTripMs(url) }
  }
  try {
    const [delayed, direct] = [
      await startBehindProxy('link_delayed', DELAY_MS),
      await startBehindProxy('link_direct', 0),
    ]
    const before = await countRecords(delayed.url, agents)
    const setting = { product: delayed, ceiling: direct, connections: LINK_CONNECTIONS }
    const warm = { ...plan, warmUpSeconds: WARM_UPS * plan.warmUpSeconds }
    const { answered, also, ...turn } = await alternate({ ...bench, plan: warm }, setting)
    const recorded = (await countRecords(delayed.url, agents)) - before
    checkCounts({ answered, recorded, inFlight: (plan.rounds + 1) * LINK_CONNECTIONS })
    return {
      name: LINK_NAME,
      unit: 'writes/s',
      ...turn,
      target: { ratio: LINK_TARGET },
      also: {
        ...also,
        round_trip_ms: rounded(delayed.roundTripMs),
        round_trip_ms_without: rounded(direct.roundTripMs),
      },
    }
  } finally {
    // Nodes before their proxies.
    for (const one of started.reverse()) await one.stop()
    await database.stop()
  }
}

/** The time of the smallest query, which shows the actual delay. */
async function roundTripMs(url) {
  const client = await connected(url)
  const times = []
  try {
    while (times.length < PINGS) {
      const startedMs = performance.now()
      await client.query('SELECT 1')
      times.push(performance.now() - startedMs)
      await pause(1)
    }
  } finally {
    await client.end()
  }
  return median(times)
}

async function connected(url) {
  const client = new Client({ connectionString: url })
  await client.connect()
  return client
}
