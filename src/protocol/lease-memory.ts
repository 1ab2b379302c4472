import { type Clock, machineClock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'

const ENDED = -1n
const MICROS_PER_MS = 1_000

const cutOff = refuse('unavailable', 'This node cannot reach the database of its cluster, try again', {
  retryAfterSecs: 1,
})

/**
 * Until when a node of a cluster may answer, in memory that all of its threads share
 * (docs/adr/0046-members-of-a-cluster.md). Each incarnation of a node has memory of its own: what was started for an
 * earlier one never sees the lease of a later one. Times are of the machine's clock, which all threads see alike: a
 * process that was stopped finds its lease over when it goes on, whoever looks first.
 */
export class LeaseMemory {
  readonly memory: SharedArrayBuffer
  readonly #until: BigInt64Array
  readonly #nowMs: Clock
  readonly #why: () => Refusal

  /**
   * @param memory that of the thread which beats; new when created there
   * @param why says why it does not hold, where that is not for want of the database
   */
  constructor(memory = new SharedArrayBuffer(8), nowMs: Clock = machineClock, why = () => cutOff) {
    this.memory = memory
    this.#why = why
    this.#until = new BigInt64Array(memory)
    this.#nowMs = nowMs
  }

  /**
   * Whether the node may answer, with what it knows now. To be asked when an answer is known, not before: until then
   * the lease may end, and another node go on.
   */
  holds(): boolean {
    return this.untilMs > this.#nowMs()
  }

  /** Why the node may not answer; undefined while it may. */
  refusal(): Refusal | undefined {
    return this.holds() ? undefined : this.#why()
  }

  get untilMs(): number {
    return Number(Atomics.load(this.#until, 0)) / MICROS_PER_MS
  }

  /** It holds for longer now, unless it was ended. */
  extend(untilMs: number): void {
    const until = BigInt(Math.floor(untilMs * MICROS_PER_MS))
    for (let before = Atomics.load(this.#until, 0); before !== ENDED && before < until;) {
      const found = Atomics.compareExchange(this.#until, 0, before, until)
      if (found === before) return
      before = found
    }
  }

  /** It is over, for good. */
  end(): void {
    Atomics.store(this.#until, 0, ENDED)
  }
}
