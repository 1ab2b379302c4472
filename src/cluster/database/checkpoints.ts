import { limits } from '../../base/limits/limits.js'
import { fields, isText, listOf } from '../../base/shape.js'
import { isBuffer, type Session } from './session.js'
import type { ClusterStatements } from './statements.js'

/** The latest complete checkpoint of a shard, and the size of the sealed rows written after it. */
export interface StoredCheckpoint {
  /** Part 0; undefined if there is no checkpoint. */
  head: Buffer | undefined
  stateBytes: number
}

/**
 * The part of a checkpoint that exists while sealed rows that it contains may still be in the segments: the
 * segment after which they begin, as text.
 */
const REMOVAL = -1

export class CheckpointTable {
  readonly #session: Session
  readonly #statements: ClusterStatements['checkpoints']
  readonly #shard: number

  constructor(session: Session, { checkpoints }: ClusterStatements, shard: number) {
    this.#session = session
    this.#statements = checkpoints
    this.#shard = shard
  }

  async last(): Promise<StoredCheckpoint> {
    const segment = await this.lastSegment()
    const head = segment === undefined ? undefined : await this.part(segment, 0)
    const rows: unknown = await this.#session.rows(this.#statements.stateBytesAfter, [
      this.#shard,
      segment ?? -1,
    ])
    if (!areSums(rows)) throw new Error('Malformed checkpoint size row')
    return { head, stateBytes: Number(rows[0]?.bytes ?? 0) }
  }

  /** @returns undefined if the part does not exist or was removed */
  async part(segment: number, part: number): Promise<Buffer | undefined> {
    const rows: unknown = await this.#session.rows(this.#statements.read, [this.#shard, segment, part])
    if (!areStates(rows)) throw new Error('Malformed checkpoint part row')
    return rows[0]?.state
  }

  /**
   * Writes a part. Part 1 is written first and removes the leftovers of an interrupted attempt; part 0 is
   * written last and completes the checkpoint.
   * @throws Error if the commit may be lost
   */
  async put(segment: number, part: number, state: Buffer): Promise<void> {
    if (part === 0) return this.#complete(segment, state)
    if (part === 1) await this.#session.write(this.#statements.clear, [this.#shard, segment])
    await this.#session.write(this.#statements.put, [this.#shard, segment, part, state])
  }

  /** Writes part 0, after the part that says where `removeSealed` is to begin. */
  async #complete(segment: number, head: Buffer): Promise<void> {
    const last = await this.lastSegment()
    const first = last === undefined ? -1 : ((await this.#sealedAfter(last)) ?? last)
    await this.#session.write(this.#statements.put, [
      this.#shard,
      segment,
      REMOVAL,
      Buffer.from(String(first)),
    ])
    const { warned } = await this.#session.write(this.#statements.put, [this.#shard, segment, 0, head])
    if (warned) throw new Error('The database stopped waiting for its standby')
  }

  /**
   * Removes the sealed rows of the segments up to a complete checkpoint, and earlier checkpoints. It can be
   * repeated, and does nothing once that is done.
   */
  async removeSealed(segment: number): Promise<void> {
    const first = await this.#sealedAfter(segment)
    if (first === undefined) return
    for (let from = first; from < segment; from += limits.clusterDeleteSegments) {
      const upTo = Math.min(segment, from + limits.clusterDeleteSegments)
      await this.#session.write(this.#statements.forget, [this.#shard, from, upTo])
    }
    await this.#session.write(this.#statements.clearBefore, [this.#shard, segment])
  }

  /** The segment after which sealed rows of a checkpoint may remain; undefined if none remain. */
  async #sealedAfter(segment: number): Promise<number | undefined> {
    const pending = await this.part(segment, REMOVAL)
    if (pending === undefined) return undefined
    const first = Number(pending)
    return Number.isSafeInteger(first) && first < segment ? Math.max(first, -1) : -1
  }

  /** The segment of the latest complete checkpoint; undefined if there is none. */
  async lastSegment(): Promise<number | undefined> {
    const rows: unknown = await this.#session.rows(this.#statements.last, [this.#shard])
    if (!areSegments(rows)) throw new Error('Malformed checkpoint row')
    const segment = rows[0]?.segment ?? null
    return segment === null ? undefined : Number(segment)
  }
}

const areStates = listOf(fields({ state: isBuffer }))
const areSums = listOf(fields({ bytes: isText }))
const areSegments = listOf(
  fields({
    segment: (value): value is string | null => value === null || isText(value),
  }),
)
