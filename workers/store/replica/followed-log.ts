import type { CheckpointPlace } from './cluster-checkpoint.js'
import type { ClusterReader } from './cluster-reader.js'
import type { LogPosition } from '../log/file-log.js'
import type { Segment } from '../log/segment.js'
import type { SegmentLog } from '../log/segment-log.js'

/** The log of a shard as somebody has it who only reads it. */
export class FollowedLog implements SegmentLog<LogPosition> {
  readonly #reader: ClusterReader
  readonly #from: CheckpointPlace | undefined
  readonly #upTo: number

  /** @param from the checkpoint that an empty store begins with; @param upTo the last segment that is read */
  constructor(reader: ClusterReader, from: CheckpointPlace | undefined, upTo = Infinity) {
    this.#reader = reader
    this.#from = from
    this.#upTo = upTo
  }

  get end(): LogPosition {
    return this.#reader.positionAt(this.#reader.group)
  }

  get durable(): number {
    return this.#reader.group
  }

  *read(): Generator<Segment> {
    if (this.#from !== undefined) yield* this.#reader.readUpTo(this.#from)
    yield* this.#reader.read(this.#upTo)
  }

  reserve(): boolean {
    return false
  }

  append(): never {
    throw new Error('Who follows a log does not write to it')
  }

  syncNow(): void {}

  syncSoon(then: (error: Error | null) => void): void {
    setImmediate(() => then(null))
  }

  release(): void {}

  wipe(): void {}

  handOver(): void {}

  /** Others may use the line. */
  async close(): Promise<void> {}
}
