import { type Clock, machineClock } from '../base/clock.js'
import { refuse, type Refusal } from '../base/errors.js'

const ENDED = -1n
const MICROS_PER_MS = 1_000

const databaseUnreachable = refuse(
  'unavailable',
  'This node cannot reach the database of its cluster, try again',
  {
    retryAfterSecs: 1,
  },
)

/**
 * The lease of a node, in memory that all its threads share (docs/adr/0046-members-of-a-cluster.md). Each
 * incarnation of a node has its own memory, so threads of an earlier incarnation never see a later lease. All
 * threads use the machine's clock, so a process that was suspended finds its lease expired when it continues.
 */
export class LeaseMemory {
  readonly memory: SharedArrayBuffer
  readonly #until: BigInt64Array
  readonly #nowMs: Clock
  readonly #refusal: () => Refusal

  /**
   * @param memory the memory of the heartbeat thread; new when absent
   * @param refusal returns the refusal for an ended lease; by default, that the database is unreachable
   */
  constructor(
    memory = new SharedArrayBuffer(8),
    nowMs: Clock = machineClock,
    refusal = () => databaseUnreachable,
  ) {
    this.memory = memory
    this.#refusal = refusal
    this.#until = new BigInt64Array(memory)
    this.#nowMs = nowMs
  }

  /** Whether the node may answer. Check when the answer is ready: the lease may end before that. */
  holds(): boolean {
    return this.untilMs > this.#nowMs()
  }

  /** Why the node must not answer; undefined while it may. */
  refusal(): Refusal | undefined {
    return this.holds() ? undefined : this.#refusal()
  }

  get untilMs(): number {
    return Number(Atomics.load(this.#until, 0)) / MICROS_PER_MS
  }

  /** Extends the lease, unless it was ended. */
  extend(untilMs: number): void {
    const until = BigInt(Math.floor(untilMs * MICROS_PER_MS))
    for (let before = Atomics.load(this.#until, 0); before !== ENDED && before < until;) {
      const found = Atomics.compareExchange(this.#until, 0, before, until)
      if (found === before) return
      before = found
    }
  }

  end(): void {
    Atomics.store(this.#until, 0, ENDED)
  }
}
