import { refuse, type Refusal } from '../../base/errors.js'
import { limits } from '../../base/limits/limits.js'

/** One login by password, as the gate runs it. */
export interface LoginAttempt<State, Answer> {
  /**
   * Reads the present state: how many failures are counted, or the final answer, for example for a locked account.
   * Called again when other attempts have ended in between.
   */
  look(): Promise<LoginLook<State, Answer>>
  /** Compares the password and counts a failure, in this order, before it resolves. */
  verify(state: State): Promise<Answer>
}

/** The result of a look. `state` is passed to `verify`. */
export type LoginLook<State, Answer> =
  | { kind: 'open'; failures: number; state: State }
  | { kind: 'answered'; answer: Answer }

/** How many attempts may run and wait at once. */
export interface LoginGateSettings {
  /** Failures after which the account is locked, at least 1. */
  attemptsMax: number
  /** Attempts of one e-mail that wait. */
  waitingPerKeyMax?: number
  /** Attempts of all e-mails that wait. */
  waitingMax?: number
}

/** The attempts of one e-mail in one namespace. */
interface Lane {
  /** Attempts that do not compare the password yet. */
  waiting: number
  /** Passwords being compared. */
  running: number
  /** Attempts that have ended after comparing; if it changes, a look is out of date. */
  finished: number
  /** Resolves when the last waiting attempt has had its turn. */
  turn: Promise<void>
  /** Wakes the attempt whose turn it is, while it waits for another to end. */
  wake: () => void
}

const noRoom = refuse('overloaded', 'Too many logins wait, try again', { retryAfterSecs: 1 })

/**
 * Keeps parallel logins from guessing more often than the lockout allows (docs/adr/0010-auth-state.md).
 *
 * Failures are counted only after the slow comparison, so a hundred requests at once would all find the account open.
 * For one e-mail of one namespace, no more passwords are compared at once than failures are still allowed; other
 * attempts wait in order and look again whenever one has ended. Unknown e-mails are treated in the same way.
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

  /** The number of e-mails that the gate keeps state for. */
  get laneCount(): number {
    return this.#lanes.size
  }

  /**
   * Runs one attempt.
   * @param key names the namespace and the e-mail
   * @returns its answer; 503 overloaded when too many wait already
   * @throws what `look` or `verify` throws
   */
  async run<State, Answer>(key: string, attempt: LoginAttempt<State, Answer>): Promise<Answer | Refusal> {
    const lane = this.#lanes.get(key) ?? newLane()
    if (lane.waiting >= this.#settings.waitingPerKeyMax || this.#waiting >= this.#settings.waitingMax) {
      return noRoom
    }
    this.#lanes.set(key, lane)
    try {
      const look = await this.#inTurn(lane, attempt)
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

  /** Waits for the turn, then looks. When that finds the account open, the attempt counts as running. */
  async #inTurn<State, Answer>(
    lane: Lane,
    attempt: LoginAttempt<State, Answer>,
  ): Promise<LoginLook<State, Answer>> {
    lane.waiting++
    this.#waiting++
    const before = lane.turn
    let passOn = () => {}
    lane.turn = new Promise((resolve) => (passOn = resolve))
    await before
    try {
      const look = await this.#lookUntilFree(lane, attempt)
      if (look.kind === 'open') lane.running++
      return look
    } finally {
      lane.waiting--
      this.#waiting--
      passOn()
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
      // An attempt that ended during the look may or may not be counted in it, so look again.
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
