import type { ClusterChannels } from '../../../src/protocol/cluster-log-messages.js'
import type { Notice } from '../../../src/protocol/notices.js'
import { CheckpointWriter } from './checkpoint-writer.js'
import { ClusterLog } from './cluster-log.js'
import type { ClusterSecret } from './cluster-segment.js'
import { LogClient } from './log-client.js'
import { catchUpStore } from './node-store.js'
import type { OpenLog } from '../log/shard-log.js'

export interface NodeLogOptions {
  path: string
  channels: ClusterChannels
  secret: ClusterSecret
  /** Unix milliseconds. */
  clock(): number
  /** Called while the shard waits for the database. */
  heartbeat(): void
  onFailure(error: Error): void
}

/** The log of a node's shard, whose store is up to date. */
export interface NodeLog {
  openLog: OpenLog
  checkpoints: CheckpointWriter
  /** The segment with which this node opened the log; 0 before that. */
  readonly term: number
  /** A notice if the store was built from the log. */
  notice: Notice | undefined
}

/**
 * Applies the log to the store of a node's shard, so that the shard can open it.
 * @throws Error as `catchUpStore` does
 */
export async function prepareNodeLog(options: NodeLogOptions): Promise<NodeLog> {
  const { path, channels, secret, clock, heartbeat, onFailure } = options
  const client = new LogClient(channels.log, heartbeat)
  const found = await catchUpStore({ path, client, secret })
  const checkpoints = new CheckpointWriter({
    path,
    client: new LogClient(channels.checkpoints, heartbeat),
    secret,
    last: found.last,
    clock,
    onFailure,
  })
  const segmentWritten = (stateBytes: number, removes: boolean) =>
    checkpoints.segmentWritten(stateBytes, removes)
  let opened: ClusterLog | undefined
  const openLog: OpenLog = (from, rowOf) =>
    (opened = new ClusterLog({ ...secret, client, writer: channels.writer, segmentWritten }, from, rowOf))
  const place = found.kind === 'setAside' ? { place: found.place } : {}
  const notice: Notice | undefined = found.kind === 'caughtUp' ? undefined : { kind: 'storeBuilt', ...place }
  return {
    openLog,
    checkpoints,
    notice,
    get term() {
      return opened?.term ?? 0
    },
  }
}
