import { setTimeout } from 'node:timers/promises'
import { authRules } from './auth.js'
import { unreachable } from '../base/assert.js'
import { limits } from '../base/limits.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import type { Control } from '../backup/control.js'
import type { DataDirectory } from '../data-directory/data-directory.js'
import type { ReaderPool } from '../dispatch/reader-pool.js'
import type { ServerLog } from '../dispatch/server-log.js'
import { Shards, type FrontNotice } from '../dispatch/shards.js'
import type { SinkThread } from '../dispatch/sink-thread.js'
import type { ApiKeyUpkeep } from '../http/auth/api-key-upkeep.js'
import type { StreamHub } from '../http/streams/hub.js'
import { shardFolder } from '../data-directory/shard-folders.js'

/** The shards, and who is told of them once it is there. */
export interface StartedShards {
  shards: Shards
  hub: StreamHub | undefined
  readers: ReaderPool | undefined
  sink: SinkThread | undefined
  serverLog: ServerLog | undefined
  control: Control | undefined
  apiKeys: ApiKeyUpkeep | undefined
}

/** Makes the shards of a data directory; their threads are to be started. */
export function startShards(config: Config, directory: DataDirectory, log: Logger): StartedShards {
  const settings = Array.from({ length: directory.shards }, (_none, shard) => ({
    shard,
    path: shardFolder(directory.path, shard),
    masterSeed: directory.masterSeed,
    recordBytesMax: config.recordBytesMax,
    signing: config.signing,
    auth: authRules(config, directory),
    proposals: { governedAutoApproveSecs: config.governedAutoApproveSecs },
  }))
  const started: StartedShards = {
    hub: undefined,
    readers: undefined,
    sink: undefined,
    serverLog: undefined,
    control: undefined,
    apiKeys: undefined,
    shards: new Shards(
      settings,
      {
        events: (shard, events) => started.hub?.events(shard, events),
        notice: (shard, notice) => takeNotice(notice, { ...started, shard, log }),
        async died(shard, error) {
          log.error({ shard, err: error }, 'a shard thread ended and is started again')
          started.sink?.pause(shard)
          started.control?.abort()
          await Promise.race([
            started.readers?.letGo(shard),
            setTimeout(limits.shardEndMs, undefined, { ref: false }),
          ])
        },
        hung: (shard) => log.error({ shard }, 'a shard thread hangs and is ended'),
        lost(shard, reason) {
          log.fatal({ shard, reason }, 'a shard needs a new process: this one ends itself')
          void endProcess(started.shards)
        },
        restarted(shard) {
          log.warn({ shard }, 'a shard thread serves again')
          started.readers?.resume(shard)
          started.sink?.resume(shard)
          started.hub?.restarted(shard)
          started.serverLog?.restarted(shard)
          started.apiKeys?.restarted(shard)
        },
      },
      { cacheBytesMax: config.recordCacheBytes, silenceMaxMs: config.shardSilenceSecs * 1_000 },
    ),
  }
  return started
}

/** Hands a notice of a shard to those whom it concerns. */
function takeNotice(
  notice: FrontNotice,
  { hub, apiKeys, shard, log }: StartedShards & { shard: number; log: Logger },
): void {
  switch (notice.kind) {
    case 'policiesChanged':
      hub?.endUsersOf(notice.agents)
      return
    case 'erased':
      hub?.forget(notice.agents)
      return
    case 'apiKeysChanged':
      apiKeys?.changed(notice.changes)
      return
    case 'imported':
      hub?.readAgain(notice.agents)
      return
    case 'failed':
      log.error({ shard, failures: notice.failures }, 'reads of a shard failed')
      return
    default:
      unreachable(notice)
  }
}

/**
 * Ends the process though threads of it may hang. With exit code 1 where they can be ended; to exit waits for each of
 * them, so one in a call into the kernel that does not return leaves nothing but a kill.
 */
export async function endProcess(shards: Shards): Promise<void> {
  if (await shards.abandon()) process.exit(1)
  process.kill(process.pid, 'SIGKILL')
}
