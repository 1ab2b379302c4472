import { type Checked, fields, isNumber, isText, listOf } from '../base/shape.js'
import type { TaskAnswers } from './pool-tasks.js'

/*
 * Tasks of threads on whole stores: copy, check, compute the root of their heads (docs/adr/0020-backup.md).
 */

/** Copies the stores of a data directory as of one moment. */
export interface CopyTask {
  /** Directories of the stores, in order of shards. */
  from: string[]
  /** Empty directories, one per store. */
  to: string[]
  /**
   * For a running server: the segment of its log up to which each copied store must be, and no further.
   * Without it, no process has the stores open, and they are first brought up to their logs.
   */
  segments?: number[]
  progress: SharedArrayBuffer
}

const isShardCopy = fields({ agents: isNumber, records: isNumber })
export type ShardCopy = Checked<typeof isShardCopy>

export interface CheckTask {
  path: string
  shard: number
  progress: SharedArrayBuffer
}

const isShardCheck = fields({
  agents: isNumber,
  /** Including genesis records. */
  records: isNumber,
  /** The shard's clock at its last commit; the zero clock if it has no records. */
  lastHlc: isText,
  /** The first `limits.checkFaultsMax` faults; empty for a valid store. */
  faults: listOf(isText),
})
export type ShardCheck = Checked<typeof isShardCheck>

/** Hashes the chain heads of stores to one root. */
export interface HeadsTask {
  paths: string[]
  progress: SharedArrayBuffer
}

/** The tasks on whole stores with their results. */
export interface StoreTasks {
  /** Empty if a store was written in the meantime. */
  copyStores: { task: CopyTask; found: ShardCopy[] }
  checkOne: { task: CheckTask; found: ShardCheck }
  /** Hex. */
  rootOfHeads: { task: HeadsTask; found: string }
}

export const storeAnswers: TaskAnswers<StoreTasks> = {
  copyStores: listOf(isShardCopy),
  checkOne: isShardCheck,
  rootOfHeads: isText,
}

/** Thrown in a task that is stopped. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted')
  }
}

/** The progress of tasks, in memory shared with the waiting thread, which can stop them by it. */
export class TaskProgress {
  readonly memory: SharedArrayBuffer
  readonly #words: BigInt64Array

  /** @param memory the memory of the waiting thread; new when absent */
  constructor(memory = new SharedArrayBuffer(24)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
  }

  /** The work since the last `begin`, in the unit of the task. */
  get done(): number {
    return Number(Atomics.load(this.#words, DONE))
  }

  /** Starts counting from 0. */
  begin(): void {
    Atomics.store(this.#words, DONE, 0n)
    Atomics.store(this.#words, SNAPSHOTS, 0n)
  }

  /** Whether a copy has its snapshots, so that the stores may be written again. */
  get hasSnapshots(): boolean {
    return Atomics.load(this.#words, SNAPSHOTS) !== 0n
  }

  markSnapshots(): void {
    Atomics.store(this.#words, SNAPSHOTS, 1n)
  }

  /** Makes the tasks throw at their next `add`. */
  stop(): void {
    Atomics.store(this.#words, STOPPED, 1n)
  }

  /** Adds finished work. @throws Interrupted after `stop` */
  add(done: number): void {
    if (Atomics.load(this.#words, STOPPED) !== 0n) throw new Interrupted()
    Atomics.add(this.#words, DONE, BigInt(done))
  }
}

const STOPPED = 0
const DONE = 1
const SNAPSHOTS = 2

/** Brings the store up to its log, for a reader without the shard. Answered by `flushed`. */
export interface StoreFlush {
  kind: 'storeFlush'
  /** Whether the shard then pauses writes to its store until `storeResume`, or for `limits.storePauseMs`. */
  rest: boolean
}

/** Ends the pause of a shard. Answered by `done`. */
export interface StoreResume {
  kind: 'storeResume'
}

/** The number of the last log segment in the store. */
export interface FlushedOutcome {
  kind: 'flushed'
  segment: number
}

export type StoreCommand = StoreFlush | StoreResume
