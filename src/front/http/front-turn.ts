import { steadyClock, type Clock } from '../../base/clock.js'
import { limits } from '../../base/limits/limits.js'

/**
 * The time that the front thread has for requests in one turn of the event loop. Once it is spent, those that arrive, and
 * bodies that are complete, wait for later turns, so that the thread does other work in between (docs/SECURITY.md, What one
 * request can cost). A connection has one request that waits at the most: the next one closes it.
 */
export class FrontTurn {
  /** When the time of this turn ends; 0 while nothing was done in it. */
  #endsAtMs = 0
  readonly #requests: (() => void)[] = []
  /** Complete bodies by their owners, who take turns. */
  readonly #bodies = new Map<string, (() => void)[]>()
  readonly #clock: Clock

  constructor(clock: Clock = steadyClock) {
    this.#clock = clock
  }

  /** Whether a request that arrives now is carried out at once. */
  get takesRequests(): boolean {
    return this.#requests.length === 0 && this.#hasTime()
  }

  /** Whether a body that is complete now is carried out at once. */
  get takesBodies(): boolean {
    return this.#bodies.size === 0 && this.#hasTime()
  }

  /** Carries a request out in a later turn, before all complete bodies. */
  requestLater(work: () => void): void {
    this.#requests.push(work)
  }

  /** Carries out a complete body in a later turn. */
  bodyLater(owner: string, work: () => void): void {
    const own = this.#bodies.get(owner)
    if (own === undefined) this.#bodies.set(owner, [work])
    else own.push(work)
  }

  #hasTime(): boolean {
    const nowMs = this.#clock()
    if (this.#endsAtMs > 0) return nowMs < this.#endsAtMs
    this.#endsAtMs = nowMs + limits.requestTurnMs
    // At the end of this turn: immediates come after all that has arrived.
    setImmediate(() => this.#end())
    return true
  }

  /** Ends a turn: at least one of each kind that waits is carried out. */
  #end(): void {
    do this.#requests.shift()?.()
    while (this.#requests.length > 0 && this.#clock() < this.#endsAtMs)
    do this.#nextBody()
    while (this.#bodies.size > 0 && this.#clock() < this.#endsAtMs)
    this.#endsAtMs = 0
    if (this.#requests.length > 0 || this.#bodies.size > 0) this.#hasTime()
  }

  #nextBody(): void {
    const [next] = this.#bodies
    if (next === undefined) return
    const [owner, own] = next
    const work = own.shift()
    this.#bodies.delete(owner)
    if (own.length > 0) this.#bodies.set(owner, own)
    work?.()
  }
}

/**
 * Work of the front thread that may take long, done in slices: between two of them it serves others. All uploads share
 * the slices, so that a hundred of them hold up the thread no longer than one (docs/SECURITY.md, What one request can
 * cost).
 */
export class FrontSlices {
  readonly #waiting: (() => void)[] = []

  /** Carries out one slice in its turn: `work` takes a few milliseconds at the most. Rejects where it throws. */
  run<Result>(work: () => Result): Promise<Result> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => this.#turn())
      this.#waiting.push(() => {
        try {
          resolve(work())
        } catch (error) {
          reject(error)
        }
      })
    })
  }

  /** Carries out work that comes in steps, a slice for each. */
  async runSteps<Result>(steps: Iterator<undefined, Result, undefined>): Promise<Result> {
    for (;;) {
      const step = await this.run(() => steps.next())
      if (step.done === true) return step.value
    }
  }

  #turn(): void {
    const endsAtMs = performance.now() + limits.frontTurnMs
    do this.#waiting.shift()?.()
    while (this.#waiting.length > 0 && performance.now() < endsAtMs)
    if (this.#waiting.length > 0) setImmediate(() => this.#turn())
  }
}
