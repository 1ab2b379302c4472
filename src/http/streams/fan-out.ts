import { limits } from '../../base/limits.js'

/** One thing to be done with each of many. */
interface Round {
  /** Does it with the next one; false at the end. */
  next(): boolean
  bytes: number
}

/**
 * Does things with many connections, in the order that they were given, and lets the front do something else in between:
 * a write to each of ten thousand sockets takes longer than anybody else should wait.
 */
export class FanOut {
  readonly #rounds: Round[] = []
  #backlogBytes = 0
  #scheduled = false
  #running = false

  /** Bytes that rounds which are not through hold on to. */
  get backlogBytes(): number {
    return this.#backlogBytes
  }

  /**
   * Does `task` with each of `many` as they are now; at once as far as a slice of time reaches.
   * @param bytes what has to be kept until the round is through
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
    if (!this.#scheduled && !this.#running) this.#run()
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
