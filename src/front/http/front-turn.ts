import { CallerTurns } from '../../base/caller-turns.js'
import { steadyClock, type Clock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'

/**
 * The front thread's time budget for requests in one turn of the event loop. When it is spent, new requests
 * and complete bodies wait for later turns, so that the thread does other work in between (docs/SECURITY.md,
 * What one request can cost). At most one request of a connection waits: the next one closes the connection.
 */
export class FrontTurn {
  /** When the budget of this turn ends; 0 if nothing was done in it. */
  #endsAtMs = 0
  readonly #requests: (() => void)[] = []
  /** Waiting bodies, by holder. */
  readonly #bodies = new CallerTurns<() => void>()
  readonly #clock: Clock

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock
  }

  /** Whether a request that arrives now can be handled immediately. */
  get takesRequests(): boolean {
    return this.#requests.length === 0 && this.#hasTime()
  }

  /** Whether a body that completes now can be processed immediately. */
  get takesBodies(): boolean {
    return this.#bodies.length === 0 && this.#hasTime()
  }

  /** Handles a request in a later turn, before all waiting bodies. */
  deferRequest(work: () => void): void {
    this.#requests.push(work)
  }

  /** Processes a complete body in a later turn. */
  deferBody(holder: string, work: () => void): void {
    this.#bodies.push(holder, work)
  }

  #hasTime(): boolean {
    const nowMs = this.#clock()
    if (this.#endsAtMs > 0) return nowMs < this.#endsAtMs
    this.#endsAtMs = nowMs + limits.requestTurnMs
    // Immediates run at the end of this turn, after everything that has arrived.
    setImmediate(() => this.#end())
    return true
  }

  /** Ends a turn: runs at least one waiting request and one waiting body. */
  #end(): void {
    do this.#requests.shift()?.()
    while (this.#requests.length > 0 && this.#clock() < this.#endsAtMs)
    do this.#bodies.take()?.()
    while (this.#bodies.length > 0 && this.#clock() < this.#endsAtMs)
    this.#endsAtMs = 0
    if (this.#requests.length > 0 || this.#bodies.length > 0) this.#hasTime()
  }
}

/**
 * Runs long work of the front thread in slices, with other work in between. All uploads share the slices, so
 * that a hundred of them block the thread no longer than one (docs/SECURITY.md, What one request can cost).
 */
export class FrontSlices {
  readonly #waiting: (() => void)[] = []

  /**
   * Runs one slice, after those that wait already; `work` takes a few milliseconds at most. Rejects if it
   * throws.
   */
  run<Result>(work: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#runWaiting())
      this.#waiting.push(() => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Runs work step by step, each step in its own slice. */
  async runSteps<Result>(steps: Iterator<undefined, Result, undefined>): Promise<Result> {
    for (;;) {
      const step = await this.run(() => steps.next())
      if (step.done === true) return step.value
    }
  }

  #runWaiting(): void {
    const endsAtMs = performance.now() + limits.frontTurnMs
    do this.#waiting.shift()?.()
    while (this.#waiting.length > 0 && performance.now() < endsAtMs)
    if (this.#waiting.length > 0) setImmediate(() => this.#runWaiting())
  }
}
