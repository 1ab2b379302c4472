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
  /** Called when the bytes are counted, before anything else can happen to the request. */
  onTaken(): void
}

interface Waiting extends Need {
  resolve(refusal: Refusal | undefined): void
}

/** The requests of one owner that wait, in order of arrival. */
interface Queue {
  waiting: Waiting[]
  /** They are refused then, unless one of them gets memory before. */
  untilMs: number
}

const tooMany = refuse('overloaded', 'Too many requests of this caller are waiting for memory, try again', {
  retryAfterSecs: 1,
})
const tooLong = refuse('overloaded', 'The request has waited too long for memory, try again', {
  retryAfterSecs: 1,
})

/** Requests that wait for the memory that they need. Owners take turns. */
export class MemoryTurns {
  readonly #bytes: BoundedBytes
  readonly #clock: Clock
  /** By owner; the one that had its turn is the last. */
  readonly #queues = new Map<string, Queue>()
  #poll: NodeJS.Timeout | undefined

  /** @param bytes counts the memory, also of requests that do not wait */
  constructor(bytes: BoundedBytes, clock: Clock = steadyClock) {
    this.#bytes = bytes
    this.#clock = clock
  }

  /** Counts bytes as soon as there is capacity. @returns undefined when they are counted */
  reserve(need: Need): Promise<Refusal | undefined> {
    const { owner } = need
    const queue = this.#queues.get(owner) ?? { waiting: [], untilMs: this.#waitEndMs() }
    const { waiting } = queue
    if (waiting.length === 0 && this.#take(need)) return Promise.resolve(undefined)
    const others = waiting.filter((other) => !other.isCancelled())
    // If those that wait held more, the others could end and the first one would still not have its turn.
    const heldBytes = others.reduce((sum, other) => sum + other.heldBytes(), need.heldBytes())
    const isFull = others.length >= limits.bodyMemoryQueueMax || heldBytes > limits.bodyMemorySpareBytes
    if (isFull) return Promise.resolve(tooMany)
    this.#queues.set(owner, queue)
    this.#poll ??= setInterval(() => this.next(), limits.bodyMemoryPollMs)
    return new Promise((resolve) => waiting.push({ ...need, resolve }))
  }

  /** Memory was released. Also called at intervals, because other fronts release memory, too. */
  next(): void {
    for (let isTaken = true; isTaken;) {
      isTaken = false
      // Copied, because those that have had their turn are moved to the end.
      const owners = [...this.#queues.keys()]
      for (const owner of owners) if (this.#takeTurn(owner)) isTaken = true
    }
    if (this.#queues.size > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  /** @returns whether the first request of the owner got its memory */
  #takeTurn(owner: string): boolean {
    const queue = this.#queues.get(owner)
    if (queue === undefined) return false
    const refused = queue.waiting.filter((need) => need.isCancelled())
    queue.waiting = queue.waiting.filter((need) => !need.isCancelled())
    const [first] = queue.waiting
    const isTaken = first !== undefined && this.#take(first)
    if (isTaken) {
      queue.waiting.shift()?.resolve(undefined)
      queue.untilMs = this.#waitEndMs()
      // Its next turn is after those of the other owners.
      this.#queues.delete(owner)
      this.#queues.set(owner, queue)
    } else if (this.#clock() >= queue.untilMs) refused.push(...queue.waiting.splice(0))
    for (const need of refused) need.resolve(tooLong)
    if (queue.waiting.length === 0) this.#queues.delete(owner)
    return isTaken
  }

  #waitEndMs(): number {
    return this.#clock() + limits.bodyMemoryWaitMs
  }

  #take({ owner, bytes, onTaken }: Need): boolean {
    const isTaken = this.#bytes.take(owner, bytes + limits.bodyMemorySpareBytes)
    if (!isTaken) return false
    this.#bytes.release(owner, limits.bodyMemorySpareBytes)
    onTaken()
    return true
  }
}
