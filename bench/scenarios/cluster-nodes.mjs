import { shardOf } from '../../dist/src/strand/placement.js'
import { gapFigure, gapOf, gapText } from '../gap-writer.mjs'
import { initCluster, ownedBy, ownerOf, shardsOf, startNode, untilShared } from '../nodes.mjs'
import { hasPostgresql, startDatabase } from '../peers/postgresql.mjs'
import { singleWrites } from '../writers.mjs'
import { alternate } from './alternation.mjs'

/** Of writes that a node forwards, by writes at the owner of the shards. */
const FORWARDED_TARGET = 0.75
const CONNECTIONS = [64, 512]
/** The lease of the nodes that are killed and stopped, seconds. */
const LEASE_SECS = 2
const AGENT = 'failover'

/**
 * Writes at a node that owns no shard and forwards them to the owner over a link, by writes at the owner.
 * Both nodes, the database and the load share two processors, so the second node takes CPU time from the
 * first.
 * @param {{bench: import('./alternation.mjs').Bench, node: {url: string}, env: Record<string, string>}} run
 *   `node` owns the shards; the lease of `env` is so long that a second node gets none during the measurement
 * @throws {Error} when the second node got a shard
 */
export async function forwarded({ bench, node, env }) {
  const standby = await startNode('standby', env, bench.directory)
  try {
    await ownsNone(standby.url)
    const { load } = singleWrites(bench)
    const measured = []
    for (const connections of CONNECTIONS) {
      bench.report(`single writes through a link, ${connections} connections`)
      const product = { url: standby.url, load }
      const turn = await alternate(bench, { product, ceiling: { url: node.url, load }, connections })
      const { value, ceiling, ratio, also } = turn
      const name = `writes through a link, ${connections} connections, by those at the owner`
      measured.push({
        name,
        value,
        unit: 'writes/s',
        ceiling,
        ratio,
        target: { ratio: FORWARDED_TARGET },
        also,
      })
    }
    await ownsNone(standby.url)
    return measured
  } finally {
    await standby.stop()
  }
}

async function ownsNone(url) {
  const owned = await ownedBy(url)
  if (owned > 0) throw new Error(`Expected the second node to own no shard, it owns ${owned}`)
}

/**
 * How long no write is answered while a node is replaced.
 * @param {import('./alternation.mjs').Bench} bench
 * @returns {Promise<(import('../report.mjs').Measured | import('../report.mjs').NotMeasured)[]>}
 */
export async function clusterFailovers(bench) {
  if (!hasPostgresql()) return [{ name: 'failovers of nodes', notMeasured: 'no PostgreSQL' }]
  const shards = shardsOf(bench.plan)
  const database = await startDatabase({ standbys: 1 })
  try {
    return await failovers({ bench, env: initCluster(database.url, shards), shards })
  } finally {
    await database.stop()
  }
}

/**
 * The longest time without an answered write, on two nodes that share the shards: after a kill of the node
 * that owns the written shard, when both nodes are tried alternately; and at the remaining node, when the
 * owner is stopped in order. The killed or stopped node is started again and gets its share.
 * @param {{bench: import('./alternation.mjs').Bench, env: Record<string, string>, shards: number}} run no
 * node runs
 */
async function failovers({ bench, env, shards }) {
  const { plan, report, directory } = bench
  const settings = { ...env, SERVICE_CLUSTER_LEASE_SECS: String(LEASE_SECS) }
  const start = (name) => startNode(name, settings, directory)
  const nodes = new Map()
  const gaps = { kill: [], stop: [] }
  try {
    for (const name of ['failover-one', 'failover-two']) await startInto(nodes, name, start)
    for (let round = 1; round <= plan.rounds; round++) {
      for (const how of ['kill', 'stop']) {
        const { owner, ...gap } = await failover(nodes, { how, shards })
        gaps[how].push(gap)
        report(`  round ${round}: ${how} of the owner, ${gapText(gap)}`)
        await startInto(nodes, owner, start)
      }
    }
  } finally {
    for (const node of nodes.values()) await node.stop()
  }
  const leaseMs = LEASE_SECS * 1_000
  return [
    gapFigure('after a kill of the owner', gaps.kill, 1.2 * leaseMs + 2_000),
    gapFigure('where the owner is stopped in order', gaps.stop, 500),
  ].map((figure) => ({ ...figure, also: { lease_ms: leaseMs, ...figure.also } }))
}

async function startInto(nodes, name, start) {
  // A node that fails to start again must not be stopped.
  nodes.delete(name)
  nodes.set(name, await start(name))
}

/** Kills or stops the node that owns the shard of the written agent. */
async function failover(nodes, { how, shards }) {
  const urls = [...nodes.values()].map(({ url }) => url)
  await untilShared(urls, shards)
  const owner = await ownerOf(urls, shardOf(AGENT, shards))
  const { url: ownUrl } = nodes.get(owner)
  const writerUrls = how === 'kill' ? urls : urls.filter((url) => url !== ownUrl)
  const gap = await gapOf({ urls: writerUrls, agents: [AGENT] }, () => nodes.get(owner)[how]())
  return { owner, ...gap }
}
