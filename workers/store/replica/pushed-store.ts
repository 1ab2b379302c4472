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

/** A segment of a store that becomes a cluster's, and the one before it. */
export interface PushedSegment {
  before: { number: number; hash: Buffer }
  number: number
  hash: Buffer
  header: string
  parts: { blocks: Buffer; state: Buffer | null }[]
}

/** A store that nobody has open, as the beginning of a shard's log in a cluster: its blocks, and then its other rows. */
export class PushedStore {
  readonly shard: number
  readonly #snapshot: Snapshot
  readonly #secret: ClusterSecret
  #at: { number: number; hash: Buffer }

  private constructor(snapshot: Snapshot, shard: number, secret: ClusterSecret) {
    this.#snapshot = snapshot
    this.shard = shard
    this.#secret = secret
    this.#at = firstSegment(shard, secret)
  }

  /** Opens it, once it is up to its own log. */
  static async open(path: string, shard: number, secret: ClusterSecret): Promise<PushedStore> {
    const position = await positionAt(path)
    // An attempt before may have made it that of a node already.
    if (position === undefined || !isOfCluster(position)) await recover(path)
    return new PushedStore(openSnapshot(path), shard, secret)
  }

  /** Where the log is behind it: what `adopt` is to be told once all of it is there. */
  get position(): LogPosition {
    return { number: 0, hash: this.#at.hash, file: noFile, offset: this.#at.number }
  }

  /** The segments behind the first one, with the blocks; one without any where there are none: it says that there is a checkpoint. */
  *segments(): Generator<PushedSegment> {
    const { environment } = this.#snapshot
    let next = noBlocks
    for (const changes of partsOf(blocksOf(this.#snapshot))) {
      const before = this.#at
      const number = before.number + 1
      next = nextBehind(next, changes)
      const about = { shard: this.shard, segment: number, kind: 'history', writer: noWriter, next } as const
      const numbered = { ...about, lastGroup: 0, groups: 0, prev: before.hash }
      const { header, hash, parts } = encodeClusterSegment(numbered, changes, {
        ...this.#secret,
        commitmentOf: (record) => Buffer.from(erasedCommitment(environment, record), 'hex'),
      })
      const stored = parts.map(({ blocks }) => ({ blocks: Buffer.from(blocks), state: null }))
      yield { before, number, hash, header, parts: stored }
      this.#at = { number, hash }
    }
  }

  /** The parts of the checkpoint, behind all segments. */
  parts(atMs: number): Generator<CheckpointPart> {
    const { number: segment, hash } = this.#at
    const at = { shard: this.shard, segment, hash, group: 0 }
    return checkpointParts(this.#snapshot, at, { ...this.#secret, clock: () => atMs })
  }

  async close(): Promise<void> {
    await closeSnapshot(this.#snapshot)
  }
}

/** Makes a store that of a node, whose log is in the cluster from now on. Can be repeated. */
export async function adopt(path: string, position: LogPosition): Promise<void> {
  await setPositionAt(path, position)
  const log = join(path, logFolder)
  const isLink = lstatSync(log, { throwIfNoEntry: false })?.isSymbolicLink() === true
  if (isLink) rmSync(realpathSync(log), { recursive: true, force: true })
  rmSync(log, { recursive: true, force: true })
  syncDirectory(path)
}
