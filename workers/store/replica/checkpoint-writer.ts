import { assert } from '../../../src/base/assert.js'
import { limits } from '../../../src/base/limits/limits.js'
import type { LogAnswer, LogRequest } from '../../../src/protocol/cluster-log-messages.js'
import { readPosition } from '../log/position.js'
import { closeSnapshot, openSnapshot, type Snapshot } from '../snapshots.js'
import { type CheckpointPart, checkpointParts } from './cluster-checkpoint.js'
import type { ClusterSecret } from './cluster-segment.js'
import type { LogClient } from './log-client.js'
import type { LastCheckpoint } from './node-store.js'

export interface CheckpointWriterOptions {
  /** Directory of the store, which the shard has open. */
  path: string
  /** Separate from the channel of appends, so that the answers do not mix. */
  client: LogClient
  secret: ClusterSecret
  last: LastCheckpoint
  /** Unix milliseconds. */
  clock(): number
  onFailure(error: Error): void
  /** Minimum of sealed bytes for a checkpoint by size; the limit if absent. */
  bytesMin?: number
}

interface Writing {
  snapshot: Snapshot
  segment: number
  parts: Iterator<CheckpointPart>
  /** Bytes of the parts written so far. */
  bytes: number
  isDone: boolean
}

/**
 * Writes checkpoints of a shard, one part at a time: when the sealed rows since the last checkpoint are twice
 * as large as it; and if rows were removed, a day after the last checkpoint, so that they do not stay in the
 * log permanently. After a delay, in which followers read them, the sealed rows that a checkpoint contains
 * are removed from the segments.
 */
export class CheckpointWriter {
  readonly #options: CheckpointWriterOptions
  /** The last checkpoint. */
  #last: { segment: number; bytes: number; atMs: number }
  #stateBytes: number
  #hasRemovals: boolean
  #writing: Writing | undefined
  /** The last checkpoint, if its sealed rows may still be in the segments, and when to remove them. */
  #removal: { segment: number; notBeforeMs: number } | undefined
  #isWaiting = false
  #notBeforeMs = 0

  constructor(options: CheckpointWriterOptions) {
    this.#options = options
    const { head, stateBytes } = options.last
    this.#last = {
      segment: head?.segment ?? -1,
      bytes: head?.bytes ?? 0,
      // Without a checkpoint, the log still has all removed rows.
      atMs: head?.atMs ?? -Infinity,
    }
    this.#stateBytes = stateBytes
    // Segments before this start may have removed rows.
    this.#hasRemovals = stateBytes > 0
    // An earlier owner may have been interrupted.
    if (head !== undefined) this.#removeLater(head.segment, limits.clusterRemovalDelayMs)
    options.client.listen((answer) => this.#take(answer))
  }

  /** Counts a segment that was written: its sealed bytes, and whether it removed rows. */
  segmentWritten(stateBytes: number, removes: boolean): void {
    this.#stateBytes += stateBytes
    this.#hasRemovals ||= removes
  }

  /** Whether `step` has work now. */
  get ready(): boolean {
    if (this.#isWaiting) return false
    if (this.#removal !== undefined) return this.#options.clock() >= this.#removal.notBeforeMs
    return this.#writing !== undefined || this.#isDue
  }

  /** Writes a part, or removes sealed rows. A failure is reported, and the work is retried later. */
  step(): void {
    if (this.#removal !== undefined) {
      this.#send({ kind: 'removeSealed', segment: this.#removal.segment })
      return
    }
    try {
      const writing = this.#writing ?? this.#begin()
      if (writing !== undefined) this.#put(writing)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  close(): void {
    this.#end()
    this.#options.client.close()
  }

  get #isDue(): boolean {
    const nowMs = this.#options.clock()
    if (nowMs < this.#notBeforeMs) return false
    if (this.#hasRemovals && nowMs - this.#last.atMs >= limits.clusterCheckpointMs) return true
    const { bytesMin = limits.clusterCheckpointBytesMin } = this.#options
    return this.#stateBytes >= Math.max(bytesMin, 2 * this.#last.bytes)
  }

  /** @returns undefined if the store has no segments after the last checkpoint */
  #begin(): Writing | undefined {
    const { path, client, secret, clock } = this.#options
    const snapshot = openSnapshot(path)
    const position = readPosition(snapshot.environment)
    assert(position !== undefined, 'a store of a node has a log position')
    const { number: group, hash, offset: segment } = position
    const parts = checkpointParts(
      snapshot,
      { shard: client.shard, segment, hash, group },
      { ...secret, clock },
    )
    this.#writing = { snapshot, segment, parts, bytes: 0, isDone: false }
    // Segments that are written during this checkpoint count for the next one.
    this.#stateBytes = 0
    this.#hasRemovals = false
    if (segment > this.#last.segment) return this.#writing
    this.#end()
    this.#notBeforeMs = clock() + limits.clusterCheckpointRetryMs
    return undefined
  }

  #put(writing: Writing): void {
    const next = writing.parts.next()
    assert(next.done !== true, 'a checkpoint ends with its part 0')
    writing.isDone = next.value.part === 0
    if (!writing.isDone) writing.bytes += next.value.state.length
    this.#send({ kind: 'putCheckpoint', ...next.value })
  }

  #send(request: LogRequest): void {
    this.#options.client.send(request)
    this.#isWaiting = true
  }

  #take(answer: LogAnswer): void {
    this.#isWaiting = false
    const failure =
      answer.kind === 'done' ? undefined : answer.kind === 'failed' ? answer.reason : answer.kind
    if (this.#removal !== undefined) this.#rowsRemoved(this.#removal.segment, failure)
    // Without a checkpoint, the store was closed before the answer.
    else if (this.#writing !== undefined) this.#partWritten(this.#writing, failure)
  }

  #rowsRemoved(segment: number, failure: string | undefined): void {
    if (failure === undefined) {
      this.#removal = undefined
      return
    }
    this.#removeLater(segment, limits.clusterCheckpointRetryMs)
    this.#options.onFailure(new Error(`Rows that a checkpoint contains could not be removed: ${failure}`))
  }

  #partWritten(writing: Writing, failure: string | undefined): void {
    if (failure !== undefined) {
      this.#fail(new Error(`A checkpoint could not be written: ${failure}`))
    } else if (writing.isDone) {
      this.#last = { segment: writing.segment, bytes: writing.bytes, atMs: this.#options.clock() }
      this.#removeLater(writing.segment, limits.clusterRemovalDelayMs)
      this.#end()
    }
  }

  #removeLater(segment: number, delayMs: number): void {
    this.#removal = { segment, notBeforeMs: this.#options.clock() + delayMs }
  }

  #fail(error: Error): void {
    this.#end()
    this.#stateBytes = Math.max(this.#stateBytes, 2 * this.#last.bytes)
    this.#notBeforeMs = this.#options.clock() + limits.clusterCheckpointRetryMs
    this.#hasRemovals = true
    this.#options.onFailure(error)
  }

  #end(): void {
    const writing = this.#writing
    this.#writing = undefined
    if (writing !== undefined) void closeSnapshot(writing.snapshot)
  }
}
