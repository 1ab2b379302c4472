import { steadyClock, type Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { BoundedBytes } from './bounded-bytes.js'

/** Bytes that a request needs. */
interface Need {
  /** Whose limit they count for. */
  owner: string
  bytes: number
  /** Bytes of the request that are counted already: those that have arrived. */
  heldBytes(): number
  /** Whether the request was cancelled, so that nothing is reserved any more. */
  isCancelled(): boolean
}

interface Waiting extends Need {
  untilMs: number
  resolve(refusal: Refusal | undefined): void
}

const tooMany = refuse('overloaded', 'Too many requests of this caller are waiting for memory, try again', {
  retryAfterSecs: 1,
})
const tooLong = refuse('overloaded', 'The request has waited too long for memory, try again', {
  retryAfterSecs: 1,
})

/** Requests that wait for the memory that they need, in order of arrival for each owner. */
export class MemoryTurns {
  readonly #bytes: BoundedBytes
  readonly #clock: Clock
  readonly #waiting = new Map<string, Waiting[]>()
  #poll: NodeJS.Timeout | undefined

  /** @param bytes counts the memory, also of requests that do not wait */
  constructor(bytes: BoundedBytes, clock: Clock = steadyClock) {
    this.#bytes = bytes
    this.#clock = clock
  }

  /** Counts bytes as soon as there is capacity. @returns undefined when they are counted */
  reserve(need: Need): Promise<Refusal | undefined> {
    const { owner } = need
    const queue = this.#waiting.get(owner) ?? []
    if (queue.length === 0 && this.#take(need)) return Promise.resolve(undefined)
    // If those that wait held more, the others could end and the first one would still not have its turn.
    const heldBytes = queue.reduce((sum, waiting) => sum + waiting.heldBytes(), need.heldBytes())
    const isFull = queue.length >= limits.otlpMemoryQueueMax || heldBytes > limits.otlpMemorySpareBytes
    if (isFull) return Promise.resolve(tooMany)
    this.#waiting.set(owner, queue)
    this.#poll ??= setInterval(() => this.#look(), limits.otlpMemoryPollMs)
    return new Promise((resolve) =>
      queue.push({ ...need, untilMs: this.#clock() + limits.otlpMemoryWaitMs, resolve }),
    )
  }

  /** Memory of an owner was released. */
  next(owner: string): void {
    const queue = this.#waiting.get(owner) ?? []
    for (let [first] = queue; first !== undefined; [first] = queue) {
      if (first.isCancelled() || this.#clock() >= first.untilMs) first.resolve(tooLong)
      else if (this.#take(first)) first.resolve(undefined)
      else return
      queue.shift()
    }
    this.#waiting.delete(owner)
    if (this.#waiting.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  #take({ owner, bytes }: Need): boolean {
    const isTaken = this.#bytes.take(owner, bytes + limits.otlpMemorySpareBytes)
    if (isTaken) this.#bytes.release(owner, limits.otlpMemorySpareBytes)
    return isTaken
  }

  /** Other owners and other fronts release memory, too. */
  #look(): void {
    for (const owner of this.#waiting.keys()) this.next(owner)
  }
}
