import { refuse, type Refusal } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { LoginPermit, LoginPermits } from '../../../protocol/login-permits.js'

export interface LoginGateSettings {
  /** Failures after which the account is locked, at least 1. */
  attemptsMax: number
  /** The most waiting attempts of one e-mail. */
  waitingPerKeyMax?: number
  /** The most waiting attempts of all e-mails. */
  waitingMax?: number
}

/** The attempts of one e-mail in one namespace. */
interface Lane {
  /** Attempts that have not started to compare the password. */
  waiting: number
  /** Passwords being compared. */
  running: number
  /** Attempts that have compared their password. When this number changes, earlier failures are stale. */
  finished: number
  /** Resolves when the last queued attempt has left the queue. */
  turn: Promise<void>
  /** Wakes the first attempt of the queue, which waits for a running attempt to end. */
  wake: () => void
}

const queueFull = refuse('overloaded', 'Too many logins are waiting, try again', { retryAfterSecs: 1 })

/**
 * Keeps parallel logins from guessing more often than the lockout allows (docs/adr/0010-auth-state.md).
 *
 * A failure is counted only after the slow comparison, so a hundred parallel requests would all find the
 * account open. The gate runs at most as many comparisons for one e-mail of a namespace as failures are still
 * allowed. Other attempts queue and look up the failures again when one has ended. Unknown e-mails are treated in the same
 * way.
 */
export class LoginGate implements LoginPermits {
  readonly #settings: Required<LoginGateSettings>
  readonly #lanes = new Map<string, Lane>()
  #waiting = 0

  constructor({
    attemptsMax,
    waitingPerKeyMax = limits.loginWaitingPerEmailMax,
    waitingMax = limits.loginWaitingMax,
  }: LoginGateSettings) {
    this.#settings = { attemptsMax, waitingPerKeyMax, waitingMax }
  }

  /** The number of e-mails for which the gate holds state. */
  get laneCount(): number {
    return this.#lanes.size
  }

  async enter(key: string): Promise<LoginPermit | Refusal> {
    const lane = this.#lanes.get(key) ?? newLane()
    if (lane.waiting >= this.#settings.waitingPerKeyMax || this.#waiting >= this.#settings.waitingMax) {
      return queueFull
    }
    this.#lanes.set(key, lane)
    lane.waiting++
    this.#waiting++
    const before = lane.turn
    let leave = () => {}
    lane.turn = new Promise((resolve) => (leave = resolve))
    await before
    return this.#permit(key, lane, () => {
      lane.waiting--
      this.#waiting--
      leave()
    })
  }

  /** @param leave leaves the queue, of which the attempt is the first */
  #permit(key: string, lane: Lane, leave: () => void): LoginPermit {
    let state: 'waiting' | 'running' | 'ended' = 'waiting'
    let { finished } = lane
    return {
      allows: async (failures) => {
        // The failures may or may not include an attempt that ended while they were looked up.
        const isStale = lane.finished !== finished
        // The gate does not decide whether an account is locked: it always lets one attempt through.
        const isFree = lane.running < Math.max(1, this.#settings.attemptsMax - failures)
        if (!isStale && !isFree) await new Promise<void>((resolve) => (lane.wake = resolve))
        finished = lane.finished
        if (isStale || !isFree || state !== 'waiting') return false
        state = 'running'
        lane.running++
        leave()
        return true
      },
      end: () => {
        if (state === 'waiting') leave()
        if (state === 'running') {
          lane.running--
          lane.finished++
        }
        if (state !== 'ended') lane.wake()
        state = 'ended'
        if (lane.waiting === 0 && lane.running === 0) this.#lanes.delete(key)
      },
    }
  }
}

function newLane(): Lane {
  return { waiting: 0, running: 0, finished: 0, turn: Promise.resolve(), wake: () => {} }
}
