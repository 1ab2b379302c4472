import type { Timing } from './backoff.js'
import { ServiceError } from './errors.js'
import type { CredentialSource } from './http.js'
import type { AuthSession, Refreshed } from './auth-types.js'

/** Hears of the session of now; undefined when nobody is signed in any more. */
export type OnSessionChange = (session: AuthSession | undefined) => void | Promise<void>

/** What keeping a session takes. */
export interface SessionKeeperSettings {
  timing: Timing
  /** Exchanges a refresh token, with all the tries that it takes. */
  exchange: (refreshToken: string) => Promise<Refreshed>
}

/** Tokens as a sign-in or a refresh answers them. */
export type TokenAnswer = Pick<Refreshed, 'token' | 'refresh_token' | 'expires_in'> &
  Partial<Pick<Refreshed, 'device_token'>>

/** One sign-in and what became of it: the same object through all its refreshes. */
interface Held {
  session: AuthSession
  /** When the token is renewed before use, and when it ends, both by the monotonic clock. */
  renewAtMs: number
  endsAtMs: number
  /** The token before the last refresh: a call that was sent with it and refused needs no other refresh. */
  tokenBefore: string | undefined
  /** The refresh under way, shared by all who need one. */
  refreshing: Promise<Refreshed> | undefined
}

/** How long before its end a token is renewed; shorter ones at half their life, so that each serves some calls. */
const RENEW_BEFORE_MS = 30_000

/**
 * Keeps the session of whoever is signed in, in memory, and renews its token: before it expires or when the service
 * says that it has, once for all callers.
 */
export class SessionKeeper {
  readonly #settings: SessionKeeperSettings
  readonly #listeners = new Set<OnSessionChange>()
  /** What the next login says that this device has signed in before by; it outlives the session. */
  deviceToken: string | undefined
  #held: Held | undefined
  /** The service ended the session: nothing takes its place until somebody says so. */
  #isEnded = false

  constructor(settings: SessionKeeperSettings) {
    this.#settings = settings
  }

  /** The session of now. */
  get session(): AuthSession | undefined {
    return this.#held?.session
  }

  /** Holds another session, or none. */
  set(session: AuthSession | undefined): void {
    this.#isEnded = false
    if (isSame(session, this.session)) return
    this.#held = session && this.#heldOf(session)
    this.#tell()
  }

  /** Holds the session of a sign-in. */
  signIn(answer: TokenAnswer): void {
    this.#isEnded = false
    this.deviceToken = answer.device_token ?? this.deviceToken
    this.#held = this.#heldOf(this.#sessionOf(answer))
    this.#tell()
  }

  /** Gives what drops the session of now, and never one that came after it. */
  dropper(): () => void {
    const held = this.#held
    return () => {
      if (!this.#held || this.#held === held) this.set(undefined)
    }
  }

  /** Calls `listener` at each change from now on, until the function that it gives is called. */
  listen(listener: OnSessionChange): () => void {
    // A function of its own: one listener that is given twice is called twice and taken away once.
    const own: OnSessionChange = (session) => listener(session)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  /**
   * Renews the token now, or waits for who does already.
   * @throws ServiceError `no_session` when nobody is signed in; `refresh_…` when the session has ended
   */
  async refresh(signal: AbortSignal | undefined): Promise<Refreshed> {
    signal?.throwIfAborted()
    if (!this.#held) throw new ServiceError(0, 'Expected a session to refresh', { code: 'no_session' })
    return unlessAborted(this.#refresh(this.#held), signal)
  }

  /** Notes that the token does not serve any more, so that the next call renews it. */
  expired(credential: string): boolean {
    const held = this.#held
    if (held?.session.token === credential) {
      held.renewAtMs = -Infinity
      held.endsAtMs = -Infinity
      return true
    }
    return held !== undefined && held.tokenBefore === credential
  }

  /**
   * The session's token; while there is none, what `fallback` gives. A session that the service ended is not followed
   * by the fallback: what a user was about to do must not be done with a key that may do more.
   */
  before(fallback: () => Promise<string | undefined>): CredentialSource {
    return {
      current: async (signal) => {
        if (this.#held) return this.#tokenOf(this.#held, signal)
        return this.#isEnded ? undefined : fallback()
      },
      expired: (credential) => this.expired(credential),
    }
  }

  async #tokenOf(held: Held, signal: AbortSignal): Promise<string> {
    const { monotonicMs } = this.#settings.timing
    if (monotonicMs() < held.renewAtMs) return held.session.token
    try {
      // Of this session, even if another was set meanwhile: a call goes out for whom it was made.
      return (await unlessAborted(this.#refresh(held), signal)).token
    } catch (error) {
      if (signal.aborted || isEnd(error) || monotonicMs() >= held.endsAtMs) throw error
      return held.session.token
    }
  }

  #refresh(held: Held): Promise<Refreshed> {
    held.refreshing ??= this.#exchange(held).finally(() => {
      held.refreshing = undefined
    })
    return held.refreshing
  }

  async #exchange(held: Held): Promise<Refreshed> {
    try {
      const answer = await this.#settings.exchange(held.session.refresh_token)
      const { session, renewAtMs, endsAtMs } = this.#heldOf(this.#sessionOf(answer))
      if (this.#held === held) this.deviceToken = answer.device_token ?? this.deviceToken
      held.tokenBefore = held.session.token
      held.session = session
      held.renewAtMs = renewAtMs
      held.endsAtMs = endsAtMs
      if (this.#held === held) this.#tell()
      return answer
    } catch (error) {
      if (isEnd(error) && this.#held === held) {
        this.#held = undefined
        this.#isEnded = true
        this.#tell()
      }
      throw error
    }
  }

  #sessionOf(answer: TokenAnswer): AuthSession {
    const { token, refresh_token, expires_in } = answer
    const expires_at_ms = this.#settings.timing.nowMs() + expires_in * 1000
    return { token, refresh_token, expires_at_ms }
  }

  #heldOf(session: AuthSession): Held {
    const { nowMs, monotonicMs } = this.#settings.timing
    // Without a known end the service's refusal tells of it.
    const leftMs = session.expires_at_ms === undefined ? Infinity : session.expires_at_ms - nowMs()
    const endsAtMs = monotonicMs() + leftMs
    return {
      // A copy that nobody can change: the application keeps the one that it gave.
      session: Object.freeze({ ...session }),
      renewAtMs: leftMs === Infinity ? Infinity : endsAtMs - Math.min(RENEW_BEFORE_MS, leftMs / 2),
      endsAtMs,
      tokenBefore: undefined,
      refreshing: undefined,
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      // Beside the call that led here: a listener that throws is reported as uncaught and disturbs nothing.
      void callListener(listener, this.session)
    }
  }
}

async function callListener(listener: OnSessionChange, session: AuthSession | undefined): Promise<void> {
  await listener(session)
}

function isSame(one: AuthSession | undefined, other: AuthSession | undefined): boolean {
  return (
    one?.token === other?.token &&
    one?.refresh_token === other?.refresh_token &&
    one?.expires_at_ms === other?.expires_at_ms
  )
}

/** Whether the service says that the session is over, and not only that it cannot answer now. */
function isEnd(error: unknown): boolean {
  return error instanceof ServiceError && error.status === 401 && error.code.startsWith('refresh_')
}

/** Waits for what others wait for, too: the signal ends the waiting and nothing else. */
function unlessAborted<R>(shared: Promise<R>, signal: AbortSignal | undefined): Promise<R> {
  if (!signal) return shared
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const release = () => signal.removeEventListener('abort', onAbort)
    shared.then(resolve, reject).finally(release)
  })
}
