import { limits } from '../../base/limits/limits.js'

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
