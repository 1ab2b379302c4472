/**
 * The heartbeat of a thread, in memory that it shares with the thread that waits for it: a count that rises with each
 * step of its work, so that slow work can be distinguished from a hung thread (docs/adr/0025-hung-threads.md).
 */
export class Heartbeat {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  /** @param memory that of the waiting thread; new when created there */
  constructor(memory = new SharedArrayBuffer(4)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  /** Changes with every step; wraps around. */
  get count(): number {
    return Atomics.load(this.#count, 0)
  }

  /** Counts a step of the thread. */
  beat(): void {
    Atomics.add(this.#count, 0, 1)
  }
}
