import { limits } from '../../../base/limits/limits.js'

/** One task for each of many connections. */
interface Round {
  /** Runs the task for the next one; false at the end. */
  next(): boolean
  bytes: number
}

/**
 * Runs tasks for many connections, in the order given, and lets the front thread serve others in between: writing to
 * ten thousand sockets takes longer than anybody else should wait.
 */
export class FanOut {
  readonly #beginsAtOnce: boolean
  readonly #rounds: Round[] = []
  #backlogBytes = 0
  #scheduled = false
  #running = false

  /**
   * @param begins `at once`: a round takes its first slice in the turn of the event loop in which it comes. `later`: in the
   *   next one, so that many rounds of one turn share its slice and take none each
   */
  constructor(begins: 'at once' | 'later' = 'at once') {
    this.#beginsAtOnce = begins === 'at once'
  }

  /** Bytes that unfinished rounds keep in memory. */
  get backlogBytes(): number {
    return this.#backlogBytes
  }

  /**
   * Runs `task` for each of `many` as they are now, as far as one time slice allows, and the others in later turns.
   * @param bytes what has to stay in memory until the round ends
   */
  each<T>(many: Iterable<T>, task: (one: T) => void, bytes = 0): void {
    const all = [...many]
    let at = 0
    this.#backlogBytes += bytes
    this.#rounds.push({
      bytes,
      next() {
        const one = all[at++]
        if (one === undefined) return false
        task(one)
        return true
      },
    })
    if (this.#scheduled || this.#running) return
    if (this.#beginsAtOnce) this.#run()
    else this.#goOnLater()
  }

  #run(): void {
    this.#running = true
    const until = performance.now() + limits.streamSliceMs
    try {
      while (this.#rounds.length > 0 && performance.now() < until) {
        if (this.#rounds[0]?.next() === false) this.#backlogBytes -= this.#rounds.shift()?.bytes ?? 0
      }
    } finally {
      this.#running = false
      this.#goOnLater()
    }
  }

  #goOnLater(): void {
    if (this.#rounds.length === 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#run()
    })
  }
}
