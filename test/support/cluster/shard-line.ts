import { MessageChannel, type Worker } from 'node:worker_threads'
import type { ClusterLogSettings, LogChannel } from '../../../src/protocol/cluster-log-messages.js'

/**
 * Opens a channel of a shard to the thread of a cluster's log, and thus a connection to the database.
 * @param known the file that records the durable end of the log
 */
export function shardLine(thread: Worker, shard: number, known?: string): LogChannel {
  const { port1, port2 } = new MessageChannel()
  const memory = { answers: new SharedArrayBuffer(4), ends: new SharedArrayBuffer(4) }
  const shared = { shard, ...memory, ...(known !== undefined && { known }) }
  const theirs: LogChannel = { ...shared, port: port2 }
  thread.postMessage(theirs, [port2])
  return { ...shared, port: port1 }
}

/** The settings of the thread of a cluster's log, without rows of nodes. */
export function logSettings(urls: string[], tables: string): ClusterLogSettings {
  return { urls, tables, rows: { key: Buffer.alloc(32), cluster: tables }, takeOverDelayMs: 0 }
}
