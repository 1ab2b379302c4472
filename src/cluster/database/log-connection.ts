import type { Session } from './session.js'
import { LATE, withinTime } from '../../base/time-limit.js'

/** The connection of a log, which is replaced if it has broken. One call at a time. */
export class LogConnection {
  readonly #open: () => Promise<Session>
  #session: Session | undefined
  #isAbandoned = false

  /** @param open connects to the server that accepts writes */
  constructor(open: () => Promise<Session>) {
    this.#open = open
  }

  /** Whether it will never be used again. */
  get isAbandoned(): boolean {
    return this.#isAbandoned
  }

  /**
   * Runs statements on the connection, which is closed if they take longer than `ms`.
   * @throws Error if the database cannot be reached, or does not answer in time; UnfitServer
   */
  async use<T>(ms: number, work: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#ready()
    return withinTime({ ms, drop: () => session.drop() }, () => work(session))
  }

  /** @throws Error if no server that accepts writes can be reached */
  async #ready(): Promise<Session> {
    const before = this.#session
    if (before?.open === true && (await isAlive(before))) return before
    const session = await this.#open()
    if (this.#isAbandoned) {
      session.drop()
      throw new Error(LATE)
    }
    this.#session = session
    return session
  }

  /** Closes the session immediately; the outcome of a running call is unknown. */
  drop(): void {
    this.#session?.drop()
    this.#session = undefined
  }

  /** Closes it permanently, also while it is being opened. */
  abandon(): void {
    this.#isAbandoned = true
    this.drop()
  }

  async close(): Promise<void> {
    await this.#session?.close()
    this.#session = undefined
  }
}

/** Whether a session that was idle still answers; if not, it is closed, and another one is opened. */
async function isAlive(session: Session): Promise<boolean> {
  try {
    await session.verifyIdle()
    return true
  } catch {
    session.drop()
    return false
  }
}
