import { logAgent } from '../../strand/organism-id.js'
import type { Logger } from '../../base/log.js'
import { limits } from '../../base/limits/limits.js'
import type { ServerLog } from '../../dispatch/duties/server-log.js'
import type { FrontListener } from '../../dispatch/threads/shard-threads.js'
import type { AuthServices } from '../../server/auth.js'
import type { ClusterNode } from './node.js'
import type { Fronts } from '../../server/fronts/fronts.js'
import type { Parts } from '../../server/parts.js'
import { Peers } from '../links/peers.js'
import {
  lastUsesElsewhere,
  mailWaitsElsewhere,
  routedGate,
  routedReaders,
  routedTickets,
  tellHeadElsewhere,
} from '../links/routed.js'
import type { Services } from '../../server/services.js'

/** What making the ways of a node needs. */
interface Made {
  cluster: ClusterNode
  parts: Parts
  serverLog: ServerLog | undefined
  log: Logger
}

/** The ways of a node to what other nodes have. */
export type ClusterWays = ReturnType<typeof clusterWays>

/** Makes them; no link is tried yet. */
export function clusterWays({ cluster, parts, serverLog, log }: Made) {
  const { threads, shards, readers, sink, tickets, apiKeys } = parts
  const late: { listener?: FrontListener; fronts?: Fronts | undefined } = {}
  const peers = new Peers({
    links: threads.links,
    log,
    listener: {
      learn: async (shard, ask) => late.listener?.learn(shard, ask),
      restarted: (shard) => late.listener?.restarted(shard),
    },
    offered: (shard) => cluster.offered(shard),
    stops: (place) => cluster.stops(place),
  })
  const routes = { threads, peers }
  const logShard = shards.shardOf(logAgent)
  const failed = (error: unknown) => log.error({ err: error }, 'another node could not be told')
  return {
    peers,
    /** The shard of the server log: who owns it keeps the log. */
    logShard,
    /** What requests ask. */
    parts: {
      readers: routedReaders(readers, routes),
      tickets: routedTickets(tickets, { node: cluster.name, apiKeys, peers, failed }),
    },
    auth: (own: AuthServices & { gate: Parameters<typeof routedGate>[0] }): AuthServices => ({
      ...own,
      gate: routedGate(own.gate, routes),
      onMail() {
        own.onMail()
        mailWaitsElsewhere(peers)
      },
    }),
    /** Nothing of this process has a store open but the threads of its shards. */
    begin(listener: FrontListener, fronts: Fronts | undefined): void {
      late.listener = listener
      late.fronts = fronts
      for (let shard = 0; shard < shards.count; shard++) {
        sink?.pause(shard)
        void readers.letGo(shard)
      }
      serverLog?.pause()
    },
    /** What becomes of the shards of this process. */
    shards: {
      threads,
      async letGo(shard: number) {
        sink?.pause(shard)
        const late = new Promise((resolve) => setTimeout(resolve, limits.shardEndMs).unref())
        await Promise.race([readers.letGo(shard), late])
      },
      async leaving(shard: number) {
        await Promise.all([late.fronts?.leaving(shard), shard === logShard ? serverLog?.pause() : undefined])
      },
    },
  }
}

/** What every front of a node answers, of all nodes. */
export function clusterServices(
  own: Services,
  { ways, parts }: { ways: ClusterWays; parts: Parts },
): Services {
  const { peers, logShard } = ways
  const { threads } = parts
  return {
    ...own,
    async lastUses(keyIds) {
      const all = [await own.lastUses(keyIds), ...(await lastUsesElsewhere(peers, keyIds))]
      return keyIds.map((_keyId, place) => Math.max(...all.map((uses) => uses[place] ?? 0)))
    },
    tellHead:
      own.tellHead &&
      (async (head) =>
        threads.serves(logShard)
          ? ((await own.tellHead?.(head)) ?? false)
          : tellHeadElsewhere(peers, logShard, head)),
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
