import type { ClusterLines } from '../../../src/protocol/cluster-log-messages.js'
import type { Notice } from '../../../src/protocol/notices.js'
import { CheckpointWriter } from './checkpoint-writer.js'
import { ClusterLog } from './cluster-log.js'
import type { ClusterSecret } from './cluster-segment.js'
import { LogLine } from './log-line.js'
import { bringUp } from './node-store.js'
import type { OpenLog } from '../log/shard-log.js'

/** What a node's shard needs for its log. */
export interface NodeLogParts {
  /** Directory of the store. */
  path: string
  lines: ClusterLines
  secret: ClusterSecret
  /** Unix milliseconds. */
  clock(): number
  /** Called while the database is waited for. */
  beat(): void
  failed(error: Error): void
}

/** The log of a shard of a node whose store is up to it. */
export interface NodeLog {
  openLog: OpenLog
  checkpoints: CheckpointWriter
  /** The segment by which this node opened the log, once it has. */
  readonly term: number
  /** What became of the store that was there. */
  notice: Notice | undefined
}

/** Brings the store of a node's shard up to its log, so that it can be opened. @throws Error as `bringUp` does */
export async function prepareNodeLog(parts: NodeLogParts): Promise<NodeLog> {
  const { path, lines, secret, clock, beat, failed } = parts
  const line = new LogLine(lines.log, beat)
  const found = await bringUp({ path, line, secret })
  const checkpoints = new CheckpointWriter({
    path,
    line: new LogLine(lines.checkpoints, beat),
    secret,
    last: found.last,
    clock,
    failed,
  })
  const wrote = (stateBytes: number, removes: boolean) => checkpoints.wrote(stateBytes, removes)
  let opened: ClusterLog | undefined
  const openLog: OpenLog = (from, rowOf) =>
    (opened = new ClusterLog({ ...secret, line, writer: lines.writer, wrote }, from, rowOf))
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
