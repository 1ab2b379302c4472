import { rmSync } from 'node:fs'
import type { ShardLine } from '../../../src/protocol/cluster-log-messages.js'
import type { ClusterSecret } from './cluster-segment.js'
import type { LogForm } from '../log/log-form.js'
import { LogLine } from './log-line.js'
import { buildStore, lastCheckpoint } from './node-store.js'
import { release } from './pushed-store.js'

/** A store that is made of a shard's log, up to a segment. */
export interface Pulled {
  path: string
  upTo: number
  line: ShardLine
  secret: ClusterSecret
  /** The form of the log; that of nodes when absent. */
  form?: LogForm | undefined
}

/**
 * Makes a store of its own of a shard's log.
 * @returns false where the log has a checkpoint behind that segment, so that it cannot be read up to there any more
 */
export async function pullStore({ path, upTo, line: given, secret, form }: Pulled): Promise<boolean> {
  const line = new LogLine(given)
  try {
    const { head } = lastCheckpoint({ line, secret, form })
    if (head !== undefined && head.segment > upTo) return false
    try {
      await buildStore({ path, line, secret, form }, head, upTo)
    } catch (error) {
      // One that was made meanwhile took away what was being read.
      const { head: later } = lastCheckpoint({ line, secret, form })
      if (later?.segment === head?.segment) throw error
      return false
    }
    await release(path)
    rmSync(`${path}/lock.mdb`, { force: true })
    return true
  } finally {
    line.close()
  }
}
