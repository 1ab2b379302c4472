/** The state of a thread at one check. */
export interface Look {
  /** Milliseconds of a monotonic clock (`performance.now`). */
  nowMs: number
  /** Whether the thread has work. */
  waiting: boolean
  /** A number that changes with each step of the thread. */
  steps: number
}

/**
 * Measures how long a thread with work makes no progress.
 *
 * When the checking thread was blocked, or the process or the machine was suspended, the next check is late.
 * So a check counts at most one interval.
 */
export class Watchdog {
  readonly #everyMs: number
  #silentMs = 0
  #lookedAtMs: number | undefined
  #steps: number | undefined

  /** @param everyMs the interval between checks, milliseconds */
  constructor(everyMs: number) {
    this.#everyMs = everyMs
  }

  /** @returns milliseconds without progress, including this check */
  look({ nowMs, waiting, steps }: Look): number {
    const passedMs = nowMs - (this.#lookedAtMs ?? nowMs)
    this.#lookedAtMs = nowMs
    if (!waiting || steps !== this.#steps) this.#silentMs = 0
    else this.#silentMs += Math.min(passedMs, this.#everyMs)
    this.#steps = steps
    return this.#silentMs
  }
}
