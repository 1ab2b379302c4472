/**
 * Signs of life of a thread, in memory that it shares with who waits for it: it counts one up whenever it has come a
 * step further, so that work which takes long is told from none at all (docs/adr/0025-hung-threads.md).
 */
export class Heartbeat {
  readonly memory: SharedArrayBuffer
  readonly #count: Int32Array

  /** @param memory that of who waits; new where this is who waits */
  constructor(memory = new SharedArrayBuffer(4)) {
    this.memory = memory
    this.#count = new Int32Array(memory)
  }

  /** Changes with every step; wraps around. */
  get count(): number {
    return Atomics.load(this.#count, 0)
  }

  /** The thread has come a step further. */
  beat(): void {
    Atomics.add(this.#count, 0, 1)
  }
}
