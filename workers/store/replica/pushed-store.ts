import { join } from 'node:path'
import { lstatSync, realpathSync, rmSync } from 'node:fs'
import type { Transaction } from 'lmdb'
import { limits } from '../../../src/base/limits/limits.js'
import { logFolder } from '../../../src/store-files/log-folder.js'
import { syncDirectory } from '../../../src/base/sync-directory.js'
import type { SegmentPart } from '../../../src/protocol/cluster-log-messages.js'
import { openEnvironment, type Environment } from '../environment.js'
import { erasedCommitment } from '../tables/erasures.js'
import { nextRows } from './checkpoint-writer.js'
import { encodeCheckpointHead, encodeCheckpointPart } from './cluster-checkpoint.js'
import { nextBehind } from './cluster-log.js'
import {
  type ClusterSecret,
  encodeClusterSegment,
  firstSegment,
  type NextBlocks,
  noBlocks,
  noWriter,
} from './cluster-segment.js'
import type { LogPosition } from '../log/file-log.js'
import { isOfCluster, noFile, positionAt, setPositionAt } from '../log/position.js'
import { blocksOf, replicatedRows } from './replicated-rows.js'
import { changeBytes, type RowChange } from '../log/row-change.js'
import { recover } from '../log/shard-log.js'

/** A segment of a store that becomes a cluster's, and the one before it. */
export interface PushedSegment {
  before: { number: number; hash: Buffer }
  number: number
  hash: Buffer
  header: string
  parts: { blocks: Buffer; state: Buffer | null }[]
}

/** A part of its checkpoint; part 0 comes last. */
export interface PushedPart {
  segment: number
  part: number
  state: Buffer
}

/** A store that nobody has open, as the beginning of a shard's log in a cluster: its blocks, and then its other rows. */
export class PushedStore {
  readonly #environment: Environment
  readonly #transaction: Transaction
  readonly #shard: number
  readonly #secret: ClusterSecret
  #at: { number: number; hash: Buffer }

  private constructor(environment: Environment, shard: number, secret: ClusterSecret) {
    this.#environment = environment
    environment.root.resetReadTxn()
    this.#transaction = environment.root.useReadTransaction()
    this.#shard = shard
    this.#secret = secret
    this.#at = firstSegment(shard, secret)
  }

  /** Opens it, once it is up to its own log. */
  static async open(path: string, shard: number, secret: ClusterSecret): Promise<PushedStore> {
    const position = await positionAt(path)
    // An attempt before may have made it that of a node already.
    if (position === undefined || !isOfCluster(position)) await recover(path)
    return new PushedStore(openEnvironment(path, 'read'), shard, secret)
  }

  /** Where the log is behind it: what `adopt` is to be told once all of it is there. */
  get position(): LogPosition {
    return { number: 0, hash: this.#at.hash, file: noFile, offset: this.#at.number }
  }

  /** The segments behind the first one, with the blocks. */
  *segments(): Generator<PushedSegment> {
    let next: NextBlocks = noBlocks
    for (const changes of gathered(blocksOf(this.#environment))) {
      const before = this.#at
      const number = before.number + 1
      next = nextBehind(next, changes)
      const about = { shard: this.#shard, segment: number, kind: 'history', writer: noWriter, next } as const
      const numbered = { ...about, lastGroup: 0, groups: 0, prev: before.hash }
      const { header, hash, parts } = encodeClusterSegment(numbered, changes, {
        ...this.#secret,
        commitmentOf: (record) => Buffer.from(erasedCommitment(this.#environment, record), 'hex'),
      })
      yield { before, number, hash, header, parts: parts.map(buffersOf) }
      this.#at = { number, hash }
    }
  }

  /** The parts of the checkpoint, behind all segments. */
  *parts(atMs: number): Generator<PushedPart> {
    const { number: segment, hash } = this.#at
    const shard = this.#shard
    const rows = replicatedRows(this.#environment, this.#transaction)
    let [parts, bytes] = [0, 0]
    for (let changes = nextRows(rows); changes.length > 0; changes = nextRows(rows)) {
      parts += 1
      const state = encodeCheckpointPart({ shard, segment, part: parts }, changes, this.#secret)
      bytes += state.length
      yield { segment, part: parts, state }
    }
    const head = { shard, segment, hash, group: 0, atMs, parts, bytes }
    yield { segment, part: 0, state: encodeCheckpointHead(head, this.#secret) }
  }

  async close(): Promise<void> {
    this.#transaction.done()
    await this.#environment.root.close()
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

/** Blocks that one segment takes together. */
function* gathered(blocks: Iterable<RowChange>): Generator<RowChange[]> {
  let changes: RowChange[] = []
  let bytes = 0
  for (const block of blocks) {
    const more = changeBytes(block)
    if (changes.length > 0 && bytes + more > limits.clusterPartBytes) {
      yield changes
      changes = []
      bytes = 0
    }
    changes.push(block)
    bytes += more
  }
  // Empty where there are no blocks: it says that there is a checkpoint.
  yield changes
}

function buffersOf({ blocks, state }: SegmentPart): { blocks: Buffer; state: Buffer | null } {
  return { blocks: Buffer.from(blocks), state: state === null ? null : Buffer.from(state) }
}
