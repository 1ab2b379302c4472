import { systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import { ServerLog } from '../dispatch/duties/server-log.js'
import type { ShardThreads } from '../dispatch/threads/shard-threads.js'
import type { Config } from '../settings/config.js'
import type { ServerState } from './state.js'

/** The log of strand heads, if it is on (docs/adr/0023-server-log.md). */
export function makeServerLog(
  { logIntervalSecs }: Config,
  { threads, state, log }: { threads: ShardThreads; state: ServerState; log: Logger },
): ServerLog | undefined {
  if (logIntervalSecs === 0) return undefined
  return new ServerLog({
    shards: threads.shards,
    committed: (shard) => (threads.has(shard) ? threads.figures()[shard]?.records : undefined),
    intervalMs: logIntervalSecs * 1_000,
    readOnly: () => state.readOnly,
    nowMs: systemClock,
    failed: (reason) => log.warn({ reason }, 'the log of strand heads fell behind'),
    forked: (strands) =>
      log.error(
        { strands },
        'strands have not got the records that the log told of: the log tells no more of them',
      ),
  })
}
