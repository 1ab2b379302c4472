import { setTimeout as pause } from 'node:timers/promises'
import { assert, unreachable } from '../base/assert.js'
import { statusOf } from '../base/errors.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import type { BeginParts, ClusterNode } from '../cluster/node/node.js'
import type { ClusterReach } from '../cluster/node/services.js'
import { untilServed } from '../cluster/node/until-served.js'
import type { Control } from '../data/backup/control.js'
import type { Flush } from '../data/backup/space.js'
import type { DataDirectory } from '../data/directory.js'
import { shardFolder } from '../data/shard-folders.js'
import type { FrontListener, FrontNotice, Shards } from '../dispatch/links/shards.js'
import type { ClusterOwner } from '../dispatch/threads/shard-port.js'
import { ShardThreads, type ShardsListener } from '../dispatch/threads/shard-threads.js'
import type { ApiKeyUpkeep } from '../front/http/auth/api-key-upkeep.js'
import type { StreamHub } from '../front/http/streams/hub.js'
import type { OpenUploads } from '../front/limits/uploads.js'
import type { Command } from '../protocol/messages.js'
import type { Config } from '../settings/config.js'
import { logAgent } from '../strand/organism-id.js'
import { authRules, type AuthParts } from './auth.js'
import type { Fronts } from './fronts/fronts.js'
import type { Parts } from './parts.js'
import type { Standing } from './state.js'

/** The parts of a front that learn what happens to shards. */
export interface FrontTold {
  log: Logger
  streams: StreamHub
  uploads: OpenUploads
  /** As this front sees them. */
  shards: Shards
  keys: ApiKeyUpkeep
  /** Absent while the auth add-on is off. */
  auth: AuthParts | undefined
}

/** Those of the main thread. */
export interface ShardsTold {
  parts: Parts
  log: Logger
  keys: ApiKeyUpkeep
  auth: AuthParts | undefined
  control: Control
  /** The other fronts. */
  fronts: Fronts | undefined
  /** Other nodes of a cluster are fronts, too. */
  cluster: ClusterNode | undefined
  /** Ends the process. */
  end(): void
}

/** The shards of a data directory; their threads are not started yet. */
export function makeShards(config: Config, directory: DataDirectory, cluster?: ClusterOwner): ShardThreads {
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
  return new ShardThreads(settings, { cacheBytesMax, silenceMaxMs: shardSilenceSecs * 1_000, cluster })
}

/** Passes events of shards on to the parts of a front that they concern. */
export function frontListener(told: FrontTold): FrontListener {
  const { streams, uploads, shards, keys, auth } = told
  return {
    events: (shard, events) => streams.events(shard, events),
    notice: (shard, notice) => takeNotice(shard, notice, told),
    async learn(shard, ask) {
      await keys.learn(shard, ask)
      await auth?.learn(ask)
    },
    restarted(shard) {
      streams.restarted(shard)
      // A change of policies may be lost, if the thread died before it was sent.
      uploads.endByPolicies((agent) => shards.shardOf(agent) === shard)
    },
  }
}

/** The same in the main thread, which has parts that other fronts have not. */
function shardsListener({ parts, fronts, cluster, control, end, ...told }: ShardsTold): ShardsListener {
  const { readers, sink, serverLog, shards } = parts
  const { log } = told
  const died = new Set<number>()
  return {
    ...frontListener({ ...parts, ...told }),
    replaced(shard) {
      fronts?.join(shard)
      cluster?.replaced(shard)
    },
    async died(shard, error) {
      log.error({ shard, err: error }, 'a shard thread ended and is started again')
      died.add(shard)
      control.abort()
      await releaseStore(shard, parts)
    },
    hung: (shard) => log.error({ shard }, 'a shard thread hangs and is ended'),
    lost(shard, reason) {
      log.fatal({ shard, reason }, 'a shard needs a new process: this one ends itself')
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

/** Resolves when only the thread of a shard has its store open, or the others were given their time to close it. */
async function releaseStore(
  shard: number,
  { readers, sink }: Pick<Parts, 'readers' | 'sink'>,
): Promise<void> {
  sink?.pause(shard)
  await Promise.race([readers.letGo(shard), pause(limits.shardEndMs, undefined, { ref: false })])
}

/** What a node begins to take shards with. */
interface NodeBegins {
  reach: ClusterReach
  standing: Standing
  calls: BeginParts['calls']
  /** Ends the waiting. */
  signal: AbortSignal
  /** Takes requests, to tell clients that other nodes serve. */
  standBy(): Promise<void>
}

/**
 * Opens all shards; a node of a cluster waits until each is its own, or reached by a link.
 * @param node absent for a server of its own
 * @throws the reason of the signal
 */
export async function openShards(told: ShardsTold, node: NodeBegins | undefined): Promise<void> {
  const { parts, fronts, cluster } = told
  const { threads, shards, sink, readers, serverLog } = parts
  const listener = shardsListener(told)
  if (cluster === undefined || node === undefined) return threads.start(listener)
  threads.begin(listener)
  // Until this node has a thread for a shard, nothing else of this process opens its store.
  for (let shard = 0; shard < shards.count; shard++) {
    sink?.pause(shard)
    void readers.letGo(shard)
  }
  serverLog?.pause()
  const logShard = shards.shardOf(logAgent)
  const { reach, standing, calls } = node
  cluster.begin({
    calls,
    standing,
    peers: reach.peers,
    shards: {
      threads,
      letGo: (shard) => releaseStore(shard, parts),
      async leaving(shard) {
        await Promise.all([fronts?.leaving(shard), shard === logShard ? serverLog?.pause() : undefined])
      },
    },
  })
  return untilServed(cluster, { ...node, shards })
}

/**
 * Makes the default agent where there is none. It looks first: a disk that is full has no space for a write that would
 * only be refused.
 * @param isPatient whether it is tried again where its shard is away, as it is in a cluster when that moves
 * @returns false when the disk has no space for it
 */
export async function makeDefaultAgent(
  { agentId }: Config,
  shards: Shards,
  isPatient: () => boolean,
): Promise<boolean> {
  const look: Command = { kind: 'agentStatus', agent: agentId }
  const make: Command = { kind: 'agentCreate', agent: agentId, zone: 'governed', options: {} }
  for (;;) {
    const found = await shards.ask(agentId, look)
    const isMissing = 'code' in found && found.code === 'agent_not_found'
    const outcome = isMissing ? await shards.ask(agentId, make) : found
    if (!('code' in outcome) || outcome.code === 'agent_exists') return true
    if (outcome.code === 'storage_full') return false
    if (statusOf(outcome) !== 503 || !isPatient())
      throw new Error(`The default agent "${agentId}" could not be made: ${JSON.stringify(outcome)}`)
    await pause(limits.clusterHeldMs)
  }
}

/** How stores are brought up to their logs (src/data/backup/space.ts). */
export function storeFlushOf(shards: Shards): Flush {
  return {
    all: (rest) => flushStores(shards, rest),
    // A shard that does not serve does not rest.
    goOn: () => void shards.askAll({ kind: 'storeGoOn' }),
  }
}

/** @throws Error when a shard does not serve */
async function flushStores(shards: Shards, rest: boolean): Promise<number[]> {
  const outcomes = await shards.askAll({ kind: 'storeFlush', rest })
  return outcomes.map((outcome) => {
    if ('code' in outcome) throw new Error(outcome.detail)
    assert(outcome.kind === 'flushed', 'a flush is answered by where it ends')
    return outcome.segment
  })
}

const storeBuilt = 'the store of a shard was made from the log of the cluster'

/** Passes a notice of a shard on to the parts that it concerns. */
function takeNotice(
  shard: number,
  notice: FrontNotice,
  { streams, uploads, keys, auth, log }: FrontTold,
): void {
  switch (notice.kind) {
    case 'policiesChanged':
      streams.endUsersOf(notice.agents)
      uploads.endByPolicies((agent) => notice.agents.includes(agent))
      return
    case 'erased':
      streams.forget(notice.agents)
      return
    case 'apiKeysChanged':
      keys.changed(notice.changes)
      return
    case 'ended':
      auth?.ended(notice.revocations)
      return
    case 'rotated':
      auth?.rotated(notice.namespaces)
      return
    case 'imported':
      streams.readAgain(notice.agents)
      return
    case 'storeBuilt':
      log[notice.place === undefined ? 'info' : 'warn']({ shard, place: notice.place }, storeBuilt)
      return
    case 'failed':
      log.error({ shard, failures: notice.failures }, 'reads of a shard failed')
      return
    default:
      unreachable(notice)
  }
}
