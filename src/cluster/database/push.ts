import { steadyClock } from '../../base/clock.js'
import { CheckpointTable } from './checkpoints.js'
import { type Place, SegmentRegister, type StoredSegment } from './register.js'
import type { Session } from './session.js'
import { type ClusterStatements, clusterTables, statementsOf } from './statements.js'

/** A store as the beginning of a shard's log: segments behind the first one, then the parts of a checkpoint. */
export interface Pushed {
  segments(): Iterable<Omit<StoredSegment, 'shard'> & { before: Place }>
  /** Part 0 comes last. */
  parts(atMs: number): Iterable<{ segment: number; part: number; state: Buffer }>
}

/** Where it goes to. */
export interface PushedTo {
  session: Session
  urls: readonly string[]
  shard: number
  nowMs: number
  /** Those of the tables; of a cluster's when absent. */
  statements?: ClusterStatements
}

/**
 * Writes a store into the log of its shard, of which there is the first segment alone.
 * @param told called with the bytes of each segment
 * @throws Error when the database did not take it, or somebody else writes there
 */
export async function pushStore(to: PushedTo, store: Pushed, told: (bytes: number) => void): Promise<void> {
  const { session, urls, shard, nowMs, statements = statementsOf(clusterTables) } = to
  const register = new SegmentRegister({ urls, statements, nowMs: steadyClock, chance: Math.random })
  try {
    for (const { before, ...segment } of store.segments()) {
      const outcome = await register.append(before, { shard, ...segment })
      if (outcome.kind === 'unknown') throw new Error(outcome.reason)
      if (outcome.kind !== 'durable') throw new Error('somebody else writes to it')
      told(segment.parts.reduce((sum, { blocks }) => sum + blocks.length, 0))
    }
  } finally {
    await register.close()
  }
  const checkpoints = new CheckpointTable(session, statements, shard)
  for (const { segment, part, state } of store.parts(nowMs)) {
    if (part === 0) await checkpoints.complete(segment, state)
    else await checkpoints.put(segment, part, state)
  }
}
