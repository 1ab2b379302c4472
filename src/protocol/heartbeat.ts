/**
 * The heartbeat of a thread, in memory shared with the thread that watches it: a count of steps, by which
 * slow work differs from a hung thread (docs/adr/0025-hung-threads.md).
 */
export class Heartbeat {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  /** @param memory the memory of the watching thread; new when absent */
  constructor(memory = new SharedArrayBuffer(4)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  /** Changes with every step and wraps around. */
  get count(): number {
    return Atomics.load(this.#count, 0)
  }

  step(): void {
    Atomics.add(this.#count, 0, 1)
  }
}
