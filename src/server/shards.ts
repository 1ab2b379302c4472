import { setTimeout as pause } from 'node:timers/promises'
import { assert, unreachable } from '../base/assert.js'
import { statusOf } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { fields, isNumber } from '../base/shape.js'
import type { BeginParts, ClusterNode } from '../cluster/node/node.js'
import type { Control } from '../data/backup/control.js'
import type { Flush } from '../data/backup/space.js'
import type { DataDirectory } from '../data/directory.js'
import { shardFolder } from '../data/shard-folders.js'
import type { FrontListener, FrontNotice, Shards } from '../dispatch/links/shards.js'
import type { ClusterAccess } from '../dispatch/threads/shard-port.js'
import { ShardThreads, type ShardsListener } from '../dispatch/threads/shard-threads.js'
import type { ApiKeySync } from '../front/http/auth/api-key-sync.js'
import type { StreamHub } from '../front/http/streams/hub.js'
import type { OpenTransfers } from '../front/limits/transfers.js'
import type { Command } from '../protocol/messages.js'
import type { Config } from '../settings/config.js'
import { logAgent } from '../strand/organism-id.js'
import { authRules, type AuthParts } from './auth.js'
import type { Fronts } from './fronts/fronts.js'
import type { ClusterReach } from './node-services.js'
import type { Parts } from './parts.js'
import type { ServerStatus } from './state.js'

/** The parts of a front that process events of shards. */
export interface FrontListenerParts {
  log: Logger
  streams: StreamHub
  transfers: OpenTransfers
  shards: Shards
  keys: ApiKeySync
  /** Absent while the auth add-on is off. */
  auth: AuthParts | undefined
}

/** The parts of the main thread that process events of shards. */
export interface ShardsListenerParts {
  parts: Parts
  log: Logger
  keys: ApiKeySync
  auth: AuthParts | undefined
  control: Control
  fronts: Fronts | undefined
  /** The node, if the server is one: other nodes have fronts, too. */
  cluster: ClusterNode | undefined
  end(): void
}

/** Creates the shards of a data directory; their threads are not started yet. */
export function makeShards(config: Config, directory: DataDirectory, cluster?: ClusterAccess): ShardThreads {
  const settings = Array.from({ length: directory.shards }, (_none, shard) => ({
    shard,
    path: shardFolder(directory.path, shard),
    masterSeed: directory.masterSeed,
    recordBytesMax: config.recordBytesMax,
    signing: config.signing,
    auth: authRules(config, directory),
    proposals: { governedAutoApproveSecs: config.governedAutoApproveSecs },
  }))
  const { recordCacheBytes, fronts, shardSilenceSecs } = config
  const cacheBytesMax = Math.floor(recordCacheBytes / fronts)
  return new ShardThreads(settings, { cacheBytesMax, stallMaxMs: shardSilenceSecs * 1_000, cluster })
}

/** Passes events of shards to the parts of a front. */
export function frontListener(parts: FrontListenerParts): FrontListener {
  const { streams, transfers, shards, keys, auth } = parts
  return {
    events: (shard, events) => streams.events(shard, events),
    notice: (shard, notice) => takeNotice(shard, notice, parts),
    async catchUp(shard, request) {
      await keys.load(shard, request)
      await auth?.learn(request)
    },
    restarted(shard) {
      streams.restarted(shard)
      // If the thread died, a change of policies may not have been sent.
      transfers.endPoliciesChanged((agent) => shards.shardOf(agent) === shard)
    },
  }
}

/** The same for the main thread, which has additional parts. */
function shardsListener({
  parts,
  fronts,
  cluster,
  control,
  end,
  ...front
}: ShardsListenerParts): ShardsListener {
  const { readers, sink, serverLog, shards } = parts
  const { log } = front
  const died = new Set<number>()
  return {
    ...frontListener({ ...parts, ...front }),
    replaced(shard) {
      fronts?.join(shard)
      cluster?.replaced(shard)
    },
    async died(shard, error) {
      log.error({ shard, err: error }, 'a shard thread ended: restarting it')
      died.add(shard)
      control.abort()
      await releaseStore(shard, parts)
    },
    hung: (shard) => log.error({ shard }, 'a shard thread hangs: ending it'),
    lost(shard, reason) {
      log.fatal({ shard, reason }, 'a shard thread cannot be replaced: the process exits')
      end()
    },
    resumed(shard) {
      if (died.delete(shard)) log.warn({ shard }, 'a shard thread serves again')
      readers.resume(shard)
      sink?.resume(shard)
      serverLog?.restarted(shard)
      if (shards.shardOf(logAgent) === shard) serverLog?.resume()
    },
  }
}

/** Resolves when only the thread of a shard has its store open, or the time to close it has passed. */
async function releaseStore(
  shard: number,
  { readers, sink }: Pick<Parts, 'readers' | 'sink'>,
): Promise<void> {
  sink?.pause(shard)
  await Promise.race([readers.release(shard), pause(limits.shardEndMs, undefined, { ref: false })])
}

interface NodeStart {
  reach: ClusterReach
  status: ServerStatus
  calls: BeginParts['calls']
  /** Ends the wait. */
  signal: AbortSignal
  /** Starts listening as a standby, which refers clients to the other nodes. */
  openStandby(): Promise<void>
}

/**
 * Opens all shards; a node of a cluster waits until it owns each shard or reaches it over a link.
 * @param node absent outside a cluster
 * @throws the reason of the signal
 */
export async function openShards(server: ShardsListenerParts, node: NodeStart | undefined): Promise<void> {
  const { parts, fronts, cluster } = server
  const { threads, shards, sink, readers, serverLog } = parts
  const listener = shardsListener(server)
  if (cluster === undefined || node === undefined) return threads.start(listener)
  threads.begin(listener)
  // Nothing else in this process opens the store of a shard before this node has a thread for it.
  for (let shard = 0; shard < shards.count; shard++) {
    sink?.pause(shard)
    void readers.release(shard)
  }
  serverLog?.pause()
  const logShard = shards.shardOf(logAgent)
  const { reach, status, calls } = node
  cluster.begin({
    calls,
    status,
    peers: reach.peers,
    shards: {
      threads,
      releaseReaders: (shard) => releaseStore(shard, parts),
      async leaving(shard) {
        await Promise.all([fronts?.leaving(shard), shard === logShard ? serverLog?.pause() : undefined])
      },
    },
  })
  await untilServed(cluster, shards, node)
}

/** Pause between two checks whether the node reaches all shards, milliseconds. */
const SERVED_POLL_MS = 20

/**
 * Waits until every shard is served, by this node or by another one over a link. While others serve, the node
 * listens as a standby.
 */
async function untilServed(
  cluster: ClusterNode,
  shards: Shards,
  { status, signal, openStandby }: NodeStart,
): Promise<void> {
  while (shards.leaseRefusal() !== undefined) {
    if ((cluster.hasOthers || cluster.refuses) && status.standbyRefusal === undefined) {
      status.standbyRefusal = () => cluster.refusal
      await openStandby()
    }
    signal.throwIfAborted()
    await pause(SERVED_POLL_MS)
  }
}

/**
 * Creates the default agent if there is none. Reads first, because on a full disk the write would be refused.
 * @throws Error if the agent was imported: what an import says about sign-ins would count as the server's
 * @param isPatient whether to retry while the shard is unavailable, as when it moves within a cluster
 * @returns false if the disk has no space for it
 */
export async function makeDefaultAgent(
  { agentId }: Config,
  shards: Shards,
  isPatient: () => boolean,
): Promise<boolean> {
  const look: Command = { kind: 'agentStatus', agent: agentId }
  const make: Command = { kind: 'agentCreate', agent: agentId, zone: 'governed', options: {} }
  for (;;) {
    const found = await shards.request(agentId, look)
    const isMissing = 'code' in found && found.code === 'agent_not_found'
    if (found.kind === 'reply' && isImported(found.body)) {
      throw new Error(
        `The agent "${agentId}" was imported and cannot be the default agent: set SERVICE_AGENT_ID to another name`,
      )
    }
    const outcome = isMissing ? await shards.request(agentId, make) : found
    if (!('code' in outcome) || outcome.code === 'agent_exists') return true
    if (outcome.code === 'storage_full') return false
    if (statusOf(outcome) !== 503 || !isPatient())
      throw new Error(`Could not create the default agent "${agentId}": ${JSON.stringify(outcome)}`)
    await pause(limits.clusterHeldRetryMs)
  }
}

function isImported(status: string): boolean {
  const found: unknown = JSON.parse(status)
  return fields({ imported_records: isNumber })(found) && found.imported_records > 0
}

/** Flushes the stores up to the ends of their logs (src/data/backup/space.ts). */
export function storeFlushOf(shards: Shards): Flush {
  return {
    all: (rest) => flushStores(shards, rest),
    // A shard that does not serve has nothing to resume.
    resume: () => void shards.requestAll({ kind: 'storeResume' }),
  }
}

/** @throws Error if a shard does not serve */
async function flushStores(shards: Shards, rest: boolean): Promise<number[]> {
  const outcomes = await shards.requestAll({ kind: 'storeFlush', rest })
  return outcomes.map((outcome) => {
    if ('code' in outcome) throw new Error(outcome.detail)
    assert(outcome.kind === 'flushed', 'a flush is answered with the segment at which it ended')
    return outcome.segment
  })
}

const storeBuilt = 'built the store of a shard from the log of the cluster'

function takeNotice(
  shard: number,
  notice: FrontNotice,
  { streams, transfers, shards, keys, auth, log }: FrontListenerParts,
): void {
  switch (notice.kind) {
    case 'policiesChanged':
      streams.endPoliciesChanged(notice.agents)
      transfers.endPoliciesChanged((agent) => notice.agents.includes(agent))
      return
    case 'erased':
      streams.forget(notice.agents)
      return
    case 'apiKeysChanged':
      keys.apply(notice.changes)
      // What uploads of a deleted key have sent must not arrive after the notice is acknowledged.
      shards.flush()
      return
    case 'ended':
      auth?.ended(notice.revocations)
      shards.flush()
      return
    case 'rotated':
      auth?.rotated(notice.namespaces)
      return
    case 'imported':
      streams.rereadStore(notice.agents)
      return
    case 'storeBuilt':
      log[notice.place === undefined ? 'info' : 'warn']({ shard, place: notice.place }, storeBuilt)
      return
    case 'failed':
      log.error({ shard, failures: notice.failures }, 'a shard could not read or handle rows')
      return
    default:
      unreachable(notice)
  }
}
