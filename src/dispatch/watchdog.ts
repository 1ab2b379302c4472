/** What a look at a thread finds. */
export interface Look {
  /** Milliseconds of a clock that never jumps (`performance.now`). */
  nowMs: number
  /** Whether the thread has something to do. */
  waiting: boolean
  /** A number that is another one whenever the thread has come a step further. */
  steps: number
}

/**
 * Adds up how long a thread that has something to do has come no step further.
 *
 * It must never take for silence of the thread what is silence of whoever looks: when the looking thread was blocked, or
 * the process or the machine stood still, the next look comes late. So a look counts for at most the time after which it
 * was due, however long it was.
 */
export class Watchdog {
  readonly #everyMs: number
  #silentMs = 0
  #lookedAtMs: number | undefined
  #steps: number | undefined

  /** @param everyMs how often it is looked */
  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** @returns milliseconds of silence, those of this look with them */
  look({ nowMs, waiting, steps }: Look): number {
    const passedMs = nowMs - (this.#lookedAtMs ?? nowMs)
    this.#lookedAtMs = nowMs
    if (!waiting || steps !== this.#steps) this.#silentMs = 0
    else this.#silentMs += Math.min(passedMs, this.#everyMs)
    this.#steps = steps
    return this.#silentMs
  }
}
