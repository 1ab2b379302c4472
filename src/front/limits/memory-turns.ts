import { CallerTurns } from '../../base/caller-turns.js'
import { steadyClock, type Clock } from '../../base/clock.js'
import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'
import type { Quota } from '../../base/quota.js'

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
  /** When all requests of its owner are refused, unless one of them gets memory before. */
  end: { atMs: number }
  resolve(refusal: Refusal | undefined): void
}

const tooMany = refuse('overloaded', 'Too many requests of this caller are waiting for memory, try again', {
  retryAfterSecs: 1,
})
const tooLong = refuse('overloaded', 'The request has waited too long for memory, try again', {
  retryAfterSecs: 1,
})

/** Requests that wait for the memory that they need. Owners take turns. */
export class MemoryTurns {
  readonly #bytes: Quota
  readonly #clock: Clock
  readonly #turns = new CallerTurns<Waiting>()
  #poll: NodeJS.Timeout | undefined

  /** @param bytes counts the memory, also of requests that do not wait */
  constructor(bytes: Quota, clock: Clock = steadyClock) {
    this.#bytes = bytes
    this.#clock = clock
  }

  /** Counts bytes as soon as there is capacity. @returns undefined when they are counted */
  reserve(need: Need): Promise<Refusal | undefined> {
    const waiting = [...this.#turns.of(need.owner)]
    if (waiting.length === 0 && this.#take(need)) return Promise.resolve(undefined)
    const others = waiting.filter((other) => !other.isCancelled())
    // If those that wait held more, the others could end and the first one would still not have its turn.
    const heldBytes = others.reduce((sum, other) => sum + other.heldBytes(), need.heldBytes())
    const isFull = others.length >= limits.bodyMemoryQueueMax || heldBytes > limits.bodyMemorySpareBytes
    if (isFull) return Promise.resolve(tooMany)
    const end = waiting[0]?.end ?? { atMs: this.#waitEndMs() }
    this.#poll ??= setInterval(() => this.next(), limits.bodyMemoryPollMs)
    return new Promise((resolve) => this.#turns.push(need.owner, { ...need, end, resolve }))
  }

  /** Memory was released. Also called at intervals, because other fronts release memory, too. */
  next(): void {
    if (this.#turns.length === 0) return
    this.#refuse((need) => need.isCancelled())
    const takeNext = () => this.#turns.take((need) => this.#take(need))
    for (let need = takeNext(); need !== undefined; need = takeNext()) {
      need.end.atMs = this.#waitEndMs()
      need.resolve(undefined)
    }
    this.#refuse(({ end }) => this.#clock() >= end.atMs)
    if (this.#turns.length > 0) return
    clearInterval(this.#poll)
    this.#poll = undefined
  }

  #refuse(isRefused: (need: Waiting) => boolean): void {
    for (const need of this.#turns.remove(isRefused)) need.resolve(tooLong)
  }

  #waitEndMs(): number {
    return this.#clock() + limits.bodyMemoryWaitMs
  }

  #take({ owner, bytes, onTaken }: Need): boolean {
    const isTaken = this.#bytes.reserve(owner, bytes + limits.bodyMemorySpareBytes)
    if (!isTaken) return false
    this.#bytes.release(owner, limits.bodyMemorySpareBytes)
    onTaken()
    return true
  }
}
