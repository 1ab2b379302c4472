import { emptyBuckets, appendBoundsSecs, type ShardFigures } from './shard-figures.js'
import { limits } from '../base/limits/limits.js'

/** The scalar figures, in the order of the memory. */
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
  'setAside',
] as const

/** The number of histogram bucketCount after them. */
const bucketCount = emptyBuckets(appendBoundsSecs).length

/** The phase of a front: absent, catching up with the state of the shard, or serving. */
const phases = { absent: 0, catchingUp: 1, serving: 2 } as const

/** The first word of the fronts, after the change count, the pending commands and their bytes. */
const FRONTS_AT = 3
const WORDS = FRONTS_AT + 2 * limits.frontNumbers
/** Doubles are aligned to 8 bytes. */
const FIGURES_AT = Math.ceil(WORDS / 2) * 8

/**
 * Memory that a shard thread shares with the fronts, new for each thread: the notices that each front has
 * processed, the load of the shard, and its figures (docs/adr/0045-fronts.md).
 */
export class ShardMemory {
  readonly memory: SharedArrayBuffer
  /** The change count, pending commands and their bytes; per front, its phase and last processed notices. */
  readonly #words: Int32Array
  readonly #figures: Float64Array

  /** @param memory the memory of the thread that created it; new when absent */
  constructor(
    memory = new SharedArrayBuffer(
      FIGURES_AT + (numbers.length + bucketCount) * Float64Array.BYTES_PER_ELEMENT,
    ),
  ) {
    this.memory = memory
    this.#words = new Int32Array(memory, 0, WORDS)
    this.#figures = new Float64Array(memory, FIGURES_AT)
  }

  /** Adds a front that catches up. Until it serves, no caller gets an answer. */
  startCatchUp(front: number): void {
    this.#set(front, phases.catchingUp, 0)
  }

  /** Marks a front as serving: it has processed the notices up to a number. */
  startServing(front: number, noticeNo: number): void {
    this.#set(front, phases.serving, noticeNo)
  }

  /** Records that a front has processed the notices up to a number. */
  acknowledge(front: number, noticeNo: number): void {
    if (Atomics.load(this.#words, FRONTS_AT + 2 * front) !== phases.serving) return
    if (Atomics.exchange(this.#words, FRONTS_AT + 2 * front + 1, noticeNo) !== noticeNo) this.#changed()
  }

  remove(front: number): void {
    this.#set(front, phases.absent, 0)
  }

  /** Whether every front has processed the notices up to a number. */
  isAcknowledged(noticeNo: number): boolean {
    for (let at = FRONTS_AT; at < WORDS; at += 2) {
      const phase = Atomics.load(this.#words, at)
      if (phase === phases.catchingUp) return false
      // The number wraps around.
      if (phase === phases.serving && ((Atomics.load(this.#words, at + 1) - noticeNo) | 0) < 0) return false
    }
    return true
  }

  /** Resolves when every front has processed the notices up to a number. */
  async untilAcknowledged(noticeNo: number): Promise<void> {
    for (;;) {
      const changes = Atomics.load(this.#words, 0)
      if (this.isAcknowledged(noticeNo)) return
      const waiting = Atomics.waitAsync(this.#words, 0, changes)
      if (waiting.async) await waiting.value
    }
  }

  get depth(): number {
    return Atomics.load(this.#words, 1)
  }

  get bytes(): number {
    return Atomics.load(this.#words, 2)
  }

  /** Adds pending commands and bytes; subtracts finished ones when negative. */
  count(commands: number, bytes: number): void {
    Atomics.add(this.#words, 1, commands)
    Atomics.add(this.#words, 2, bytes)
  }

  get figures(): ShardFigures {
    const [records, commits, commitSecs, appendSecs, agents, memtableBytes, memtableSinceMs] = this.#figures
    const [flushes, flushSecs, replayed, setAside] = this.#figures.subarray(7)
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
      setAside: setAside ?? 0,
    }
  }

  set figures(figures: ShardFigures) {
    for (const [at, name] of numbers.entries()) this.#figures[at] = figures[name]
    this.#figures.set(figures.appendCounts, numbers.length)
  }

  #set(front: number, phase: number, noticeNo: number): void {
    Atomics.store(this.#words, FRONTS_AT + 2 * front + 1, noticeNo)
    Atomics.store(this.#words, FRONTS_AT + 2 * front, phase)
    this.#changed()
  }

  #changed(): void {
    Atomics.add(this.#words, 0, 1)
    Atomics.notify(this.#words, 0)
  }
}
