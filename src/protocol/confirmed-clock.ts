import { type Clock, machineClock, systemClock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'

/**
 * The time of day of a node of a cluster, in memory that all its threads share. A clock that jumps is noticed
 * at the next heartbeat. Until then the shards follow it no further than another node would, so that their
 * records do not make the next owner wait, and the fronts judge no token or license by it.
 */
export class ConfirmedClock {
  readonly memory: SharedArrayBuffer
  /** The time of day minus the machine's monotonic clock, milliseconds, when the clock was last confirmed. */
  readonly #offsetMs: Float64Array
  readonly #wall: Clock
  readonly #machine: Clock

  /** @param memory the memory of the heartbeat thread; new when absent */
  constructor(memory = new SharedArrayBuffer(8), wall: Clock = systemClock, machine: Clock = machineClock) {
    this.memory = memory
    this.#offsetMs = new Float64Array(memory)
    this.#wall = wall
    this.#machine = machine
  }

  /** A clock that follows the machine's up to now. */
  static start(): ConfirmedClock {
    const clock = new ConfirmedClock()
    clock.confirm(systemClock() - machineClock())
    return clock
  }

  /** Follows the clock of the machine up to now. @param offsetMs its time of day minus its monotonic clock */
  confirm(offsetMs: number): void {
    this.#offsetMs[0] = offsetMs
  }

  /** The time of day, whole milliseconds, at most `limits.clusterClockMs` from the one that was confirmed. */
  readonly now: Clock = () => {
    const confirmedMs = Math.floor(this.#machine() + (this.#offsetMs[0] ?? 0))
    const { clusterClockMs } = limits
    return Math.min(Math.max(this.#wall(), confirmedMs - clusterClockMs), confirmedMs + clusterClockMs)
  }
}
