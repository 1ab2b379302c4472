import { MessageChannel, type Worker } from 'node:worker_threads'
import type { ClusterLogSettings, ShardLine } from '../../../src/protocol/cluster-log-messages.js'

/**
 * A line of a shard to the thread of a cluster's log, and so a connection to the database.
 * @param known the file that says what the node knows to be durable
 */
export function shardLine(thread: Worker, shard: number, known?: string): ShardLine {
  const { port1, port2 } = new MessageChannel()
  const shared = { shard, answers: new SharedArrayBuffer(4), ends: new SharedArrayBuffer(4), known }
  const theirs: ShardLine = { ...shared, port: port2 }
  thread.postMessage(theirs, [port2])
  return { ...shared, port: port1 }
}

/** What the thread of a cluster's log is started with, where no node has a row. */
export function logSettings(urls: string[], tables: string): ClusterLogSettings {
  return { urls, tables, rows: { key: Buffer.alloc(32), cluster: tables }, patienceMs: 0 }
}
