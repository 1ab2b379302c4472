import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { LogAnswer } from '../../../src/protocol/cluster-log-messages.js'
import { readPosition } from '../log/position.js'
import { closeSnapshot, openSnapshot, type Snapshot } from '../snapshots.js'
import { type CheckpointPart, checkpointParts } from './cluster-checkpoint.js'
import type { ClusterSecret } from './cluster-segment.js'
import type { LogLine } from './log-line.js'
import type { LastCheckpoint } from './node-store.js'

/** What a writer of checkpoints works with. */
export interface CheckpointParts {
  /** Directory of the store, which the shard has open. */
  path: string
  /** A line of its own: its answers come between those of appends otherwise. */
  line: LogLine
  secret: ClusterSecret
  last: LastCheckpoint
  /** Unix milliseconds. */
  clock(): number
  failed(error: Error): void
  /** Bytes of sealed rows below which none is made for their number; as the limit says when absent. */
  bytesMin?: number
}

/** A checkpoint that is being written. */
interface Writing {
  snapshot: Snapshot
  segment: number
  parts: Iterator<CheckpointPart>
  /** Of the parts so far. */
  bytes: number
  isDone: boolean
}

/**
 * Writes checkpoints of a shard, a part at a time: when the sealed rows since the last one are twice as many as it has,
 * and daily where rows were removed, so that what was removed does not lie sealed in the log for good.
 */
export class CheckpointWriter {
  readonly #parts: CheckpointParts
  /** Of the last one. */
  #at: { segment: number; bytes: number; atMs: number }
  #stateBytes: number
  #removes: boolean
  #writing: Writing | undefined
  #isWaiting = false
  #notBeforeMs = 0

  constructor(parts: CheckpointParts) {
    this.#parts = parts
    const { head, stateBytes } = parts.last
    this.#at = { segment: head?.segment ?? -1, bytes: head?.bytes ?? 0, atMs: head?.atMs ?? parts.clock() }
    this.#stateBytes = stateBytes
    // What came before this start may have removed rows.
    this.#removes = stateBytes > 0
    parts.line.listen((answer) => this.#take(answer))
  }

  /** A segment with so many sealed bytes was written. */
  wrote(stateBytes: number, removes: boolean): void {
    this.#stateBytes += stateBytes
    this.#removes ||= removes
  }

  /** Whether there is something to do now. */
  get ready(): boolean {
    if (this.#isWaiting) return false
    return this.#writing !== undefined || this.#isDue
  }

  /** Writes a part. A failure is told, and tried again later. */
  step(): void {
    try {
      const writing = this.#writing ?? this.#begin()
      if (writing !== undefined) this.#put(writing)
    } catch (error) {
      this.#giveUp(error instanceof Error ? error : new Error(String(error)))
    }
  }

  close(): void {
    this.#end()
    this.#parts.line.close()
  }

  get #isDue(): boolean {
    const nowMs = this.#parts.clock()
    if (nowMs < this.#notBeforeMs) return false
    if (this.#removes && nowMs - this.#at.atMs >= limits.clusterCheckpointMs) return true
    const { bytesMin = limits.clusterCheckpointBytesMin } = this.#parts
    return this.#stateBytes >= Math.max(bytesMin, 2 * this.#at.bytes)
  }

  /** @returns undefined where the store has nothing that the last one has not */
  #begin(): Writing | undefined {
    const { path, line, secret, clock } = this.#parts
    const snapshot = openSnapshot(path)
    const position = readPosition(snapshot.environment)
    assert(position !== undefined, 'a store of a node says how far it is')
    const { number: group, hash, offset: segment } = position
    const parts = checkpointParts(snapshot, { shard: line.shard, segment, hash, group }, { ...secret, clock })
    this.#writing = { snapshot, segment, parts, bytes: 0, isDone: false }
    // What comes while it is written counts for the next one.
    this.#stateBytes = 0
    this.#removes = false
    if (segment > this.#at.segment) return this.#writing
    this.#end()
    this.#notBeforeMs = clock() + limits.clusterCheckpointRetryMs
    return undefined
  }

  #put(writing: Writing): void {
    const next = writing.parts.next()
    assert(next.done !== true, 'a checkpoint ends with its part 0')
    writing.isDone = next.value.part === 0
    if (!writing.isDone) writing.bytes += next.value.state.length
    this.#parts.line.ask({ kind: 'putCheckpoint', ...next.value })
    this.#isWaiting = true
  }

  #take(answer: LogAnswer): void {
    this.#isWaiting = false
    const writing = this.#writing
    // The store was closed meanwhile.
    if (writing === undefined) return
    if (answer.kind !== 'kept') {
      const reason = answer.kind === 'failed' ? answer.reason : answer.kind
      this.#giveUp(new Error(`A checkpoint could not be written: ${reason}`))
    } else if (writing.isDone) {
      this.#at = { segment: writing.segment, bytes: writing.bytes, atMs: this.#parts.clock() }
      this.#end()
    }
  }

  #giveUp(error: Error): void {
    this.#end()
    this.#stateBytes = Math.max(this.#stateBytes, 2 * this.#at.bytes)
    this.#notBeforeMs = this.#parts.clock() + limits.clusterCheckpointRetryMs
    this.#removes = true
    this.#parts.failed(error)
  }

  #end(): void {
    const writing = this.#writing
    this.#writing = undefined
    if (writing !== undefined) void closeSnapshot(writing.snapshot)
  }
}
