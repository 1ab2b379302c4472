import type { Logger } from '../../base/log.js'
import type { LoginGate } from '../../dispatch/duties/login-gate.js'
import type { ShardThreads } from '../../dispatch/threads/shard-threads.js'
import type { AuthServices } from '../../server/auth.js'
import type { Parts } from '../../server/parts.js'
import type { Services } from '../../server/services.js'
import { logAgent } from '../../strand/organism-id.js'
import { Peers } from '../links/peers.js'
import { routedGate, routedReaders, routedTickets } from '../links/routed.js'
import type { ClusterNode } from './node.js'

/** What requests of a node reach of the others. */
export type ClusterReach = ReturnType<typeof clusterReach>

/** Makes it; no link is tried yet. */
export function clusterReach({ cluster, parts, log }: { cluster: ClusterNode; parts: Parts; log: Logger }) {
  const { threads, shards, readers, tickets, apiKeys } = parts
  const peers = new Peers({
    links: shards.links,
    log,
    offered: (shard) => cluster.offered(shard),
    stops: (place) => cluster.stops(place),
  })
  const routes = { threads, peers }
  const failed = (error: unknown) => log.error({ err: error }, 'another node could not be told')
  return {
    peers,
    parts: {
      readers: routedReaders(readers, routes),
      tickets: routedTickets(tickets, { node: cluster.name, apiKeys, peers, failed }),
    },
    auth: (own: AuthServices & { gate: LoginGate }): AuthServices => ({
      ...own,
      gate: routedGate(own.gate, routes),
      onMail() {
        own.onMail()
        // It is not known here whose shard the mail is in.
        for (const link of peers.open.values()) link.call('mailWaits', undefined).catch(() => undefined)
      },
    }),
  }
}

/** What every front of a node answers, of all nodes. */
export function clusterServices(
  own: Services,
  { peers, threads }: { peers: Peers; threads: ShardThreads },
): Services {
  const logShard = threads.shards.shardOf(logAgent)
  return {
    ...own,
    async lastUses(keyIds) {
      // Of a node that is just ending, none.
      const elsewhere = [...peers.open.values()].map((link) => link.call('lastUses', keyIds).catch(() => []))
      const all = await Promise.all([own.lastUses(keyIds), ...elsewhere])
      return keyIds.map((_keyId, place) => Math.max(...all.map((uses) => uses[place] ?? 0)))
    },
    tellHead:
      own.tellHead &&
      (async (head) => {
        const told = threads.serves(logShard)
          ? own.tellHead?.(head)
          : peers.of(logShard)?.call('tellHead', head)
        return (await told) ?? false
      }),
    async server() {
      const info = await own.server()
      const links = new Set(info.shards.map((_one, shard) => peers.of(shard)))
      const asked = await Promise.all(
        [...links].map(
          async (link) => [link, await link?.call('server', undefined).catch(() => undefined)] as const,
        ),
      )
      const told = new Map(asked)
      const shards = info.shards.map((one, shard) => told.get(peers.of(shard))?.shards[shard] ?? one)
      return { ...info, shards }
    },
  }
}
