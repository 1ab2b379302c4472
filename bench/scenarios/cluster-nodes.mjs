import { shardOf } from '../../dist/src/strand/placement.js'
import { gapFigure, gapOf, gapText } from '../gap-writer.mjs'
import { ownedBy, ownerOf, sharing, startNode } from '../nodes.mjs'
import { singleWrites } from '../writers.mjs'
import { inTurn } from './alternation.mjs'

/** Of a write that a node passes on, by one at the owner of the shards. */
const FORWARDED_TARGET = 0.75
const CONNECTIONS = [64, 512]
/** The lease of the nodes that are killed and stopped, seconds. */
const LEASE_SECS = 2
const AGENT = 'failover'

/**
 * Writes at a node that owns no shard, which passes them on to the owner over a link, by writes at the owner. Both nodes, the
 * database and the load share two processors, so that the second node takes its work from the first.
 * @param {{bench: import('./alternation.mjs').Bench, node: {url: string}, env: Record<string, string>}} run `node` owns the
 *   shards; with the lease of `env` a second one gets none while this lasts
 * @throws {Error} when it got one
 */
export async function forwarded({ bench, node, env }) {
  const standby = await startNode('standby', env, bench.directory)
  try {
    await ownsNone(standby.url)
    const { load } = singleWrites(bench)
    const measured = []
    for (const connections of CONNECTIONS) {
      bench.tell(`single writes through a link, ${connections} connections`)
      const product = { url: standby.url, load }
      const turn = await inTurn(bench, { product, ceiling: { url: node.url, load }, connections })
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
 * How long nobody answers a write, of two nodes that share the shards: after a kill of the one that owns that of the write,
 * where both are asked in turn; and at the one that stays, where the owner is stopped in order. What is killed or stopped
 * is started again, and gets its share.
 * @param {{bench: import('./alternation.mjs').Bench, env: Record<string, string>, shards: number}} run no node runs
 */
export async function failovers({ bench, env, shards }) {
  const { plan, tell, directory } = bench
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
        tell(`  round ${round}: ${how} of the owner, ${gapText(gap)}`)
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
  // One that does not start again must not be stopped.
  nodes.delete(name)
  nodes.set(name, await start(name))
}

/** Kills or stops the node that owns the shard of the agent that is written. */
async function failover(nodes, { how, shards }) {
  const urls = [...nodes.values()].map(({ url }) => url)
  await sharing(urls, shards)
  const owner = await ownerOf(urls, shardOf(AGENT, shards))
  const { url: ownUrl } = nodes.get(owner)
  const asked = how === 'kill' ? urls : urls.filter((url) => url !== ownUrl)
  const gap = await gapOf({ urls: asked, agents: [AGENT] }, () => nodes.get(owner)[how]())
  return { owner, ...gap }
}
