import {
  TaskProgress,
  type CheckTask,
  type CopyTask,
  type HeadsTask,
  type ShardCheck,
  type ShardCopy,
} from '../src/protocol/store-tasks.js'
import { assert } from '../src/base/assert.js'
import { limits } from '../src/base/limits/limits.js'
import { checkStore } from './store/check/store-check.js'
import { headsRoot } from './store/tables/heads.js'
import { closeSnapshot, takeSnapshots } from './store/snapshots.js'
import { readPosition } from './store/log/position.js'
import { recover } from './store/log/shard-log.js'
import { copyStore } from './store/row-mover.js'

/*
 * Work on whole stores for `strandfast backup` and `restore`, in a thread of a separate pool
 * (docs/adr/0020-backup.md).
 */

/** Does nothing. Its result shows the pool that a thread could be started. */
export function begin(): void {}

/** Copies all stores of a data directory as of one moment, even while a server writes to them. */
export async function copyStores({ from, to, segments, progress }: CopyTask): Promise<ShardCopy[]> {
  const { add, taken } = counter(progress)
  if (segments === undefined) for (const path of from) await recover(path)
  const snapshots = await takeSnapshots(from, { scratch: to[0] ?? '', attempts: limits.snapshotTries })
  if (snapshots === undefined)
    throw new Error(
      'The shards were written to during every attempt to take a snapshot: try again when the load is lower',
    )
  taken()
  const copies: ShardCopy[] = []
  try {
    const isBehind = snapshots.some(({ environment }, shard) => {
      return segments !== undefined && readPosition(environment)?.number !== segments[shard]
    })
    if (isBehind) return []
    for (const path of to) {
      // Copy one store after the other, and close each snapshot after its copy.
      const [snapshot] = snapshots
      assert(snapshot !== undefined, 'each store has its snapshot')
      copies.push(await copyStore(snapshot, path, add))
      snapshots.shift()
      await closeSnapshot(snapshot)
    }
    return copies
  } finally {
    for (const snapshot of snapshots) await closeSnapshot(snapshot)
  }
}

export function checkOne({ path, shard, progress }: CheckTask): Promise<ShardCheck> {
  return checkStore({ path, shard }, counter(progress).add)
}

/** The Merkle root over all chain heads, hex. */
export function rootOfHeads({ paths, progress }: HeadsTask): Promise<string> {
  return headsRoot(paths, counter(progress).add)
}

function counter(memory: SharedArrayBuffer): { add(done: number): void; taken(): void } {
  const progress = new TaskProgress(memory)
  return { add: (done) => progress.add(done), taken: () => progress.markSnapshots() }
}
