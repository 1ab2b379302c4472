import type { Logger } from '../base/log.js'
import { Peers } from '../cluster/links/peers.js'
import { routedGate, routedReaders, routedTickets } from '../cluster/links/routed.js'
import type { ClusterNode } from '../cluster/node/node.js'
import type { ShardThreads } from '../dispatch/threads/shard-threads.js'
import { logAgent } from '../strand/organism-id.js'
import type { AuthServices } from './auth.js'
import type { Parts } from './parts.js'
import type { Services } from './services.js'

/** The services of a node that use the links to other nodes. */
export type ClusterReach = ReturnType<typeof clusterReach>

/** Creates them; no link is opened yet. */
export function clusterReach({ cluster, parts, log }: { cluster: ClusterNode; parts: Parts; log: Logger }) {
  const { threads, shards, readers, tickets, apiKeys } = parts
  const peers = new Peers({
    links: shards.links,
    log,
    offered: (shard) => cluster.offered(shard),
    peerStopping: (peer) => cluster.peerStopping(peer),
  })
  const routes = { threads, peers }
  const failed = (error: unknown) => log.error({ err: error }, 'a call to another node failed')
  return {
    peers,
    parts: {
      readers: routedReaders(readers, routes),
      tickets: routedTickets(tickets, { node: cluster.name, apiKeys, peers, failed }),
    },
    auth: (own: AuthServices): AuthServices => ({
      ...own,
      gate: routedGate(own.gate, routes),
      onMail() {
        own.onMail()
        // This node does not know which shard the mail is in.
        for (const link of peers.open.values()) link.call('mailWaits', undefined).catch(() => undefined)
      },
    }),
  }
}

/** Services for every front of a node, combined from all nodes. */
export function clusterServices(
  own: Services,
  { peers, threads }: { peers: Peers; threads: ShardThreads },
): Services {
  const logShard = threads.shards.shardOf(logAgent)
  return {
    ...own,
    async lastUses(keyIds) {
      // A node that is ending counts as having none.
      const elsewhere = [...peers.open.values()].map((link) => link.call('lastUses', keyIds).catch(() => []))
      const all = await Promise.all([own.lastUses(keyIds), ...elsewhere])
      return keyIds.map((_keyId, index) => Math.max(...all.map((uses) => uses[index] ?? 0)))
    },
    logHead:
      own.logHead &&
      (async (head) => {
        const written = threads.serves(logShard)
          ? own.logHead?.(head)
          : peers.of(logShard)?.call('logHead', head)
        return (await written) ?? false
      }),
    async server() {
      const info = await own.server()
      const links = new Set(info.shards.map((_one, shard) => peers.of(shard)))
      const answers = await Promise.all(
        [...links].map(
          async (link) => [link, await link?.call('server', undefined).catch(() => undefined)] as const,
        ),
      )
      const infos = new Map(answers)
      const shards = info.shards.map((one, shard) => infos.get(peers.of(shard))?.shards[shard] ?? one)
      return { ...info, shards }
    },
  }
}
