import { limits } from '../../../base/limits/limits.js'

interface Round {
  /** Runs the task for the next connection; false at the end. */
  next(): boolean
  bytes: number
}

/**
 * Runs tasks for many connections, in order, and lets the front thread serve other requests in between:
 * writing to ten thousand sockets takes too long to block it.
 */
export class FanOut {
  readonly #startsNow: boolean
  readonly #rounds: Round[] = []
  #backlogBytes = 0
  #scheduled = false
  #running = false

  /**
   * @param start `now`: a round gets its first time slice in the turn of the event loop in which it is added.
   * `later`: in the next turn, so that many rounds of one turn share a slice
   */
  constructor(start: 'now' | 'later' = 'now') {
    this.#startsNow = start === 'now'
  }

  /** Bytes that unfinished rounds hold in memory. */
  get backlogBytes(): number {
    return this.#backlogBytes
  }

  /**
   * Runs `task` for each item of `many`, as many as one time slice allows, and the others in later turns.
   * Iterates over a copy.
   * @param bytes bytes that stay in memory until the round ends
   */
  each<T>(many: Iterable<T>, task: (item: T) => void, bytes = 0): void {
    const items = [...many]
    let at = 0
    this.#backlogBytes += bytes
    this.#rounds.push({
      bytes,
      next() {
        const item = items[at++]
        if (item === undefined) return false
        task(item)
        return true
      },
    })
    if (this.#scheduled || this.#running) return
    if (this.#startsNow) this.#run()
    else this.#schedule()
  }

  #run(): void {
    this.#running = true
    const endsAtMs = performance.now() + limits.streamSliceMs
    try {
      while (this.#rounds.length > 0 && performance.now() < endsAtMs) {
        if (this.#rounds[0]?.next() === false) this.#backlogBytes -= this.#rounds.shift()?.bytes ?? 0
      }
    } finally {
      this.#running = false
      this.#schedule()
    }
  }

  #schedule(): void {
    if (this.#rounds.length === 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#run()
    })
  }
}
