import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'

export interface LoginAttempt<State, Answer> {
  /**
   * Reads the current number of failures, or the final answer, for example for a locked account. The gate
   * reads again when another attempt has ended in the meantime.
   */
  look(): Promise<LoginLook<State, Answer>>
  /** Compares the password and then counts a failure, before it resolves. */
  verify(state: State): Promise<Answer>
}

/** The result of `look`. `state` is passed to `verify`. */
export type LoginLook<State, Answer> =
  | { kind: 'open'; failures: number; state: State }
  | { kind: 'answered'; answer: Answer }

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
  /** Attempts that have compared their password. When this number changes, an earlier look is stale. */
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
 * allowed. Other attempts queue and look again when one has ended. Unknown e-mails are treated in the same
 * way.
 */
export class LoginGate {
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

  /**
   * Runs one attempt.
   * @param key identifies the namespace and the e-mail
   * @returns the answer; 503 overloaded when too many attempts already wait
   * @throws what `look` or `verify` throws
   */
  async run<State, Answer>(key: string, attempt: LoginAttempt<State, Answer>): Promise<Answer | Refusal> {
    const lane = this.#lanes.get(key) ?? newLane()
    if (lane.waiting >= this.#settings.waitingPerKeyMax || this.#waiting >= this.#settings.waitingMax) {
      return queueFull
    }
    this.#lanes.set(key, lane)
    try {
      const look = await this.#lookInOrder(lane, attempt)
      if (look.kind === 'answered') return look.answer
      try {
        return await attempt.verify(look.state)
      } finally {
        lane.running--
        lane.finished++
        lane.wake()
      }
    } finally {
      if (lane.waiting === 0 && lane.running === 0) this.#lanes.delete(key)
    }
  }

  /** Waits in the queue, then looks. An attempt that finds the account open counts as running. */
  async #lookInOrder<State, Answer>(
    lane: Lane,
    attempt: LoginAttempt<State, Answer>,
  ): Promise<LoginLook<State, Answer>> {
    lane.waiting++
    this.#waiting++
    const before = lane.turn
    let leave = () => {}
    lane.turn = new Promise((resolve) => (leave = resolve))
    await before
    try {
      const look = await this.#lookUntilFree(lane, attempt)
      if (look.kind === 'open') lane.running++
      return look
    } finally {
      lane.waiting--
      this.#waiting--
      leave()
    }
  }

  async #lookUntilFree<State, Answer>(
    lane: Lane,
    attempt: LoginAttempt<State, Answer>,
  ): Promise<LoginLook<State, Answer>> {
    for (;;) {
      const { finished } = lane
      const look = await attempt.look()
      if (look.kind === 'answered') return look
      // The look may or may not include an attempt that ended during it, so look again.
      if (lane.finished !== finished) continue
      // The gate does not decide whether an account is locked: it always lets one attempt through.
      if (lane.running < Math.max(1, this.#settings.attemptsMax - look.failures)) return look
      await new Promise<void>((resolve) => (lane.wake = resolve))
    }
  }
}

function newLane(): Lane {
  return { waiting: 0, running: 0, finished: 0, turn: Promise.resolve(), wake: () => {} }
}
