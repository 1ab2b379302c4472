import { emptyBuckets, appendBoundsSecs, type ShardFigures } from './shard-figures.js'
import { limits } from '../base/limits/limits.js'

/** The plain numbers among the figures, in the order in which they lie in the memory. */
const numbers = [
  'records',
  'commits',
  'commitSecs',
  'appendSecs',
  'agents',
  'memtableBytes',
  'memtableSinceMs',
  'flushes',
  'flushSecs',
  'replayed',
] as const

/** How many buckets follow them. */
const buckets = emptyBuckets(appendBoundsSecs).length

/** Whether a front may be told of commits: there is none, it learns what the shard has told before, or it serves. */
const phases = { absent: 0, learning: 1, serving: 2 } as const

/** The words of a front begin here; before them lie the count of changes and what waits for the shard. */
const FRONTS_AT = 3
const WORDS = FRONTS_AT + 2 * limits.frontNumbers
/** Doubles lie at a multiple of 8 bytes. */
const FIGURES_AT = Math.ceil(WORDS / 2) * 8

/**
 * Memory that the thread of a shard shares with the fronts, new with each thread: how far each front has taken what the
 * shard told with its commits, what waits for the shard in all, and the figures of the shard (docs/adr/0045-fronts.md).
 */
export class ShardMemory {
  readonly memory: SharedArrayBuffer
  /** Changes of what follows, commands that wait and their bytes; by front its phase and the last frame it has taken. */
  readonly #words: Int32Array
  readonly #figures: Float64Array

  /** @param memory that of the thread that made it; new when absent */
  constructor(
    memory = new SharedArrayBuffer(FIGURES_AT + (numbers.length + buckets) * Float64Array.BYTES_PER_ELEMENT),
  ) {
    this.memory = memory
    this.#words = new Int32Array(memory, 0, WORDS)
    this.#figures = new Float64Array(memory, FIGURES_AT)
  }

  /** A front is about to be told of commits. Until it serves, nobody is answered. */
  learns(front: number): void {
    this.#set(front, phases.learning, 0)
  }

  /** A front knows everything that the shard has told up to a frame, and serves. */
  serves(front: number, told: number): void {
    this.#set(front, phases.serving, told)
  }

  /** A front has taken what a frame told. */
  hasTaken(front: number, told: number): void {
    if (Atomics.load(this.#words, FRONTS_AT + 2 * front) !== phases.serving) return
    if (Atomics.exchange(this.#words, FRONTS_AT + 2 * front + 1, told) !== told) this.#changed()
  }

  /** A front keeps nothing of the shard any more. */
  leaves(front: number): void {
    this.#set(front, phases.absent, 0)
  }

  /** Whether every front has taken what a frame told. */
  haveTaken(told: number): boolean {
    for (let at = FRONTS_AT; at < WORDS; at += 2) {
      const phase = Atomics.load(this.#words, at)
      if (phase === phases.learning) return false
      // The count wraps around.
      if (phase === phases.serving && ((Atomics.load(this.#words, at + 1) - told) | 0) < 0) return false
    }
    return true
  }

  /** Resolves once every front has taken what a frame told. */
  async untilTaken(told: number): Promise<void> {
    for (;;) {
      const changes = Atomics.load(this.#words, 0)
      if (this.haveTaken(told)) return
      const waiting = Atomics.waitAsync(this.#words, 0, changes)
      if (waiting.async) await waiting.value
    }
  }

  /** Commands that wait for the shard, from all fronts. */
  get depth(): number {
    return Atomics.load(this.#words, 1)
  }

  /** Bytes of their bodies. */
  get bytes(): number {
    return Atomics.load(this.#words, 2)
  }

  /** Counts commands that wait from now on, or no longer do. */
  count(commands: number, bytes: number): void {
    Atomics.add(this.#words, 1, commands)
    Atomics.add(this.#words, 2, bytes)
  }

  get figures(): ShardFigures {
    const [records, commits, commitSecs, appendSecs, agents, memtableBytes, memtableSinceMs] = this.#figures
    const [flushes, flushSecs, replayed] = this.#figures.subarray(7)
    return {
      records: records ?? 0,
      commits: commits ?? 0,
      commitSecs: commitSecs ?? 0,
      appendCounts: [...this.#figures.subarray(numbers.length)],
      appendSecs: appendSecs ?? 0,
      agents: agents ?? 0,
      memtableBytes: memtableBytes ?? 0,
      memtableSinceMs: memtableSinceMs ?? 0,
      flushes: flushes ?? 0,
      flushSecs: flushSecs ?? 0,
      replayed: replayed ?? 0,
    }
  }

  set figures(figures: ShardFigures) {
    for (const [at, name] of numbers.entries()) this.#figures[at] = figures[name]
    this.#figures.set(figures.appendCounts, numbers.length)
  }

  #set(front: number, phase: number, told: number): void {
    Atomics.store(this.#words, FRONTS_AT + 2 * front + 1, told)
    Atomics.store(this.#words, FRONTS_AT + 2 * front, phase)
    this.#changed()
  }

  #changed(): void {
    Atomics.add(this.#words, 0, 1)
    Atomics.notify(this.#words, 0)
  }
}
