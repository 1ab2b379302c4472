import { join } from 'node:path'
import { lstatSync, realpathSync, rmSync } from 'node:fs'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { syncDirectory } from '../../../src/base/durable-file.js'
import type { LogPosition } from '../log/file-log.js'
import { isOfCluster, noFile, positionAt, setPositionAt } from '../log/position.js'
import { recover } from '../log/shard-log.js'
import { blocksOf, partsOf } from '../row-mover.js'
import { closeSnapshot, openSnapshot, type Snapshot } from '../snapshots.js'
import { erasedCommitment } from '../tables/erasures.js'
import { type CheckpointPart, checkpointParts } from './cluster-checkpoint.js'
import { nextBehind } from './cluster-log.js'
import {
  type ClusterSecret,
  encodeClusterSegment,
  firstSegment,
  noBlocks,
  noWriter,
} from './cluster-segment.js'

export interface PushedSegment {
  before: { number: number; hash: Buffer }
  number: number
  hash: Buffer
  header: string
  parts: { blocks: Buffer; state: Buffer | null }[]
}

/**
 * Encodes a store, which must not be open, as the beginning of a shard's log in a cluster: its blocks, then a
 * checkpoint.
 */
export class PushedStore {
  readonly shard: number
  readonly #snapshot: Snapshot
  readonly #secret: ClusterSecret
  /** The last segment so far. */
  #last: { number: number; hash: Buffer }

  private constructor(snapshot: Snapshot, shard: number, secret: ClusterSecret) {
    this.#snapshot = snapshot
    this.shard = shard
    this.#secret = secret
    this.#last = firstSegment(shard, secret)
  }

  /** Applies the store's own log, and opens the store. */
  static async open(path: string, shard: number, secret: ClusterSecret): Promise<PushedStore> {
    const position = await positionAt(path)
    // An earlier attempt may have turned it into the store of a node.
    if (position === undefined || !isOfCluster(position)) await recover(path)
    return new PushedStore(openSnapshot(path), shard, secret)
  }

  /** The position after all segments, for `adopt` once the database has them. */
  get position(): LogPosition {
    return { number: 0, hash: this.#last.hash, file: noFile, offset: this.#last.number }
  }

  /**
   * The segments with the blocks. Without blocks there is one empty segment, because it shows that there is a
   * checkpoint.
   */
  *segments(): Generator<PushedSegment> {
    const { environment } = this.#snapshot
    let next = noBlocks
    for (const changes of partsOf(blocksOf(this.#snapshot))) {
      const before = this.#last
      const number = before.number + 1
      next = nextBehind(next, changes)
      const about = { shard: this.shard, segment: number, kind: 'history', writer: noWriter, next } as const
      const content = { ...about, lastGroup: 0, groups: 0, prev: before.hash }
      const { header, hash, parts } = encodeClusterSegment(content, changes, {
        ...this.#secret,
        commitmentOf: (record) => Buffer.from(erasedCommitment(environment, record), 'hex'),
      })
      const stored = parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
      yield { before, number, hash, header, parts: stored }
      this.#last = { number, hash }
    }
  }

  /** The parts of the checkpoint. Call it after all segments were written. */
  parts(atMs: number): Generator<CheckpointPart> {
    const { number: segment, hash } = this.#last
    const at = { shard: this.shard, segment, hash, group: 0 }
    return checkpointParts(this.#snapshot, at, { ...this.#secret, clock: () => atMs })
  }

  async close(): Promise<void> {
    await closeSnapshot(this.#snapshot)
  }
}

/** Turns a store into that of a node, whose log is in the cluster. Idempotent. */
export async function adopt(path: string, position: LogPosition): Promise<void> {
  await setPositionAt(path, position)
  const log = join(path, logFolder)
  const isLink = lstatSync(log, { throwIfNoEntry: false })?.isSymbolicLink() === true
  if (isLink) rmSync(realpathSync(log), { recursive: true, force: true })
  rmSync(log, { recursive: true, force: true })
  syncDirectory(path)
}
