import type { Session } from './session.js'

/** How a log reaches its database. */
export interface LogConnectionParts {
  /** Connects to the server that accepts writes. @throws Error if there is none */
  open(): Promise<Session>
  /**
   * Called with each session before its first append.
   * @throws UnfitServer if the database must not be written to
   */
  examine?(session: Session): Promise<void>
}

export const LATE = 'the database did not answer in time; it may be waiting for its standby'

/** The connection of a log, which is replaced if it has broken. One call at a time. */
export class LogConnection {
  readonly #parts: LogConnectionParts
  #session: Session | undefined
  /** The session that has been examined. */
  #examined: Session | undefined
  #isAbandoned = false

  constructor(parts: LogConnectionParts) {
    this.#parts = parts
  }

  /** Whether it will never be used again. */
  get isAbandoned(): boolean {
    return this.#isAbandoned
  }

  /**
   * Runs statements on the connection, which is closed if they take longer than `ms`: a network can drop
   * packets indefinitely.
   * @throws Error if the database cannot be reached, or does not answer in time
   */
  async use<T>(ms: number, work: (session: Session) => Promise<T>): Promise<T> {
    const session = await this.#ready()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      session.drop()
    }, ms)
    try {
      return await work(session)
    } catch (error) {
      throw isLate ? new Error(LATE, { cause: error }) : error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Runs an append. @throws UnfitServer as well */
  append<T>(ms: number, work: (session: Session) => Promise<T>): Promise<T> {
    return this.use(ms, async (session) => {
      if (this.#examined !== session) await this.#parts.examine?.(session)
      this.#examined = session
      return work(session)
    })
  }

  /** @throws Error if no server that accepts writes can be reached */
  async #ready(): Promise<Session> {
    const before = this.#session
    if (before?.open === true && (await isAlive(before))) return before
    const session = await this.#parts.open()
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
