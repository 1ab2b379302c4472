import { type Checked, fields, isNumber, isText, listOf } from '../base/shape.js'
import type { TaskAnswers } from './pool-tasks.js'

/*
 * What threads do with whole stores: copying, checking, computing the root of their heads (docs/adr/0020-backup.md).
 */

/** Stores of a data directory, copied as they were at one moment. */
export interface CopyTask {
  /** Directories of the shards' stores, in the order of the shards. */
  from: string[]
  /** Empty directories, one for each. */
  to: string[]
  /**
   * Of a server that runs: up to which segment of its log each store has to be in the copy, and no further. Without it,
   * nobody has the stores open, and they are brought up to their logs first.
   */
  segments?: number[]
  progress: SharedArrayBuffer
}

/** What the copy of one shard's store contains. */
const isShardCopy = fields({ agents: isNumber, records: isNumber })
export type ShardCopy = Checked<typeof isShardCopy>

/** One shard's store to be checked. */
export interface CheckTask {
  /** Its directory. */
  path: string
  shard: number
  progress: SharedArrayBuffer
}

/** The result of checking a store. */
const isShardCheck = fields({
  agents: isNumber,
  /** Genesis records counted. */
  records: isNumber,
  /** The shard's clock at its last commit, or the zero clock if it has no records. */
  lastHlc: isText,
  /** The first `limits.checkFaultsMax` faults; empty for a good store. */
  faults: listOf(isText),
})
export type ShardCheck = Checked<typeof isShardCheck>

/** Stores whose chain heads are hashed to one root. */
export interface HeadsTask {
  paths: string[]
  progress: SharedArrayBuffer
}

/** The tasks of a thread for whole stores: what each is given, and what it answers. */
export interface StoreTasks {
  /** None where a store has gone on since. */
  copyStores: { task: CopyTask; found: ShardCopy[] }
  checkOne: { task: CheckTask; found: ShardCheck }
  /** Hex. */
  rootOfHeads: { task: HeadsTask; found: string }
}

/** Checks of the answers. */
export const storeAnswers: TaskAnswers<StoreTasks> = {
  copyStores: listOf(isShardCopy),
  checkOne: isShardCheck,
  rootOfHeads: isText,
}

/** Thrown within a task that was asked to stop. */
export class Interrupted extends Error {
  constructor() {
    super('Interrupted')
  }
}

/**
 * The progress of threads, in memory that they share with the thread that waits for them. A task that takes minutes is
 * also asked to stop by it.
 */
export class TaskProgress {
  readonly memory: SharedArrayBuffer
  readonly #words: BigInt64Array

  /** @param memory that of the waiting thread; new when created there */
  constructor(memory = new SharedArrayBuffer(24)) {
    this.memory = memory
    this.#words = new BigInt64Array(memory)
  }

  /** The work done since the last `begin`, in the unit of the task. */
  get done(): number {
    return Number(Atomics.load(this.#words, DONE))
  }

  /** Starts counting from 0. */
  begin(): void {
    Atomics.store(this.#words, DONE, 0n)
    Atomics.store(this.#words, TAKEN, 0n)
  }

  /** Whether a copy has its snapshots, so that the stores may go on. */
  get taken(): boolean {
    return Atomics.load(this.#words, TAKEN) !== 0n
  }

  /** Says that it has them. */
  take(): void {
    Atomics.store(this.#words, TAKEN, 1n)
  }

  /** Makes the tasks end at their next `add`. */
  stop(): void {
    Atomics.store(this.#words, STOPPED, 1n)
  }

  /** Counts work that a task has done. @throws Interrupted when it was asked to stop */
  add(done: number): void {
    if (Atomics.load(this.#words, STOPPED) !== 0n) throw new Interrupted()
    Atomics.add(this.#words, DONE, BigInt(done))
  }
}

const STOPPED = 0
const DONE = 1
const TAKEN = 2
