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
import { inTurn } from './alternation.mjs'

const delayScript = fileURLToPath(new URL('../delay-server.mjs', import.meta.url))
const PROMOTED = 'where the primary is killed and a standby promoted'
const PROMOTION_TARGET_MS = 3_000
/** The lease of a node whose primary is killed, seconds. */
const LEASE_SECS = 10
const WAY_SHARDS = 16
const WAY_CONNECTIONS = 512
/** There and back together a millisecond. */
const DELAY_MS = 0.5
const WAY_TARGET = 0.85
const WAY_NAME = `writes over a way of 1 ms to the database, ${WAY_SHARDS} shards, by those without delay, ${WAY_CONNECTIONS} connections`
const QUESTIONS = 200
/** Each of many threads compiles its code anew, on the same processors. */
const WARM_UPS = 4

/**
 * What the database of a cluster, and the way to it, do to writes.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterEngine(bench) {
  if (!hasPostgresql()) return [{ name: WAY_NAME, notMeasured: 'no PostgreSQL' }]
  return [await promotions(bench), await ways(bench)]
}

/** How long writers of all shards wait while a standby takes the place of the primary. */
async function promotions({ plan, directory, tell }) {
  tell(PROMOTED)
  const gaps = []
  for (let round = 1; round <= plan.rounds; round++) {
    gaps.push(await promotion(`promotion-${round}`, { shards: shardsOf(plan), directory }))
    tell(`  round ${round}: ${gapText(gaps.at(-1))}`)
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

/** Makes the standby that has received most the primary, and has the other one follow it. */
async function promote(standbys) {
  const text = "SELECT pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::text AS received"
  const told = await Promise.all(
    standbys.map(async ({ port, client }) => {
      const { rows } = await client.query(text)
      return { port, client, received: BigInt(rows[0].received) }
    }),
  )
  const [first, second] = told.sort((one, other) => (one.received > other.received ? -1 : 1))
  const follow = async () => {
    const from = `host=127.0.0.1 port=${first.port} user=bench`
    await second.client.query(`ALTER SYSTEM SET primary_conninfo = '${from}'`)
    await second.client.query('SELECT pg_reload_conf()')
  }
  await Promise.all([first.client.query('SELECT pg_promote(true, 60)'), follow()])
}

/**
 * Two nodes alike, over databases of one server, each behind the same proxy: one of them passes on later. The proxy takes of the
 * same processors.
 */
async function ways(bench) {
  const { plan, directory, tell } = bench
  tell(WAY_NAME)
  const { agents, load } = singleWrites(bench, WAY_SHARDS)
  const database = await startDatabase({ standbys: 1 })
  const started = []
  const way = async (name, delayMs) => {
    const proxy = await startServer([delayScript, new URL(database.url).port, String(delayMs)])
    started.push(proxy)
    const url = (await database.make(name)).replace(/:\d+\//, `:${new URL(proxy.url).port}/`)
    const node = await startNode(name, initCluster(url, WAY_SHARDS), directory)
    started.push(node)
    await createAgents(node.url, agents)
    return { url: node.url, load, roundTripMs: await roundTripMs(url) }
  }
  try {
    const [delayed, direct] = [await way('way_delayed', DELAY_MS), await way('way_direct', 0)]
    const before = await countRecords(delayed.url, agents)
    const setting = { product: delayed, ceiling: direct, connections: WAY_CONNECTIONS }
    const warm = { ...plan, warmUpSeconds: WARM_UPS * plan.warmUpSeconds }
    const { answered, also, ...turn } = await inTurn({ ...bench, plan: warm }, setting)
    const recorded = (await countRecords(delayed.url, agents)) - before
    checkCounts({ answered, recorded, inFlight: (plan.rounds + 1) * WAY_CONNECTIONS })
    return {
      name: WAY_NAME,
      unit: 'writes/s',
      ...turn,
      target: { ratio: WAY_TARGET },
      also: {
        ...also,
        round_trip_ms: rounded(delayed.roundTripMs),
        round_trip_ms_without: rounded(direct.roundTripMs),
      },
    }
  } finally {
    // Nodes before their ways.
    for (const one of started.reverse()) await one.stop()
    await database.stop()
  }
}

/** What the least question takes, so that a reader sees what the delay was. */
async function roundTripMs(url) {
  const client = await connected(url)
  const times = []
  try {
    while (times.length < QUESTIONS) {
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
