import type { Timing } from './timing.js'
import { ServiceError } from './errors.js'
import type { CredentialSource } from './http.js'
import type { AuthSession, LoggedIn } from './auth-types.js'

/**
 * Called with the current session, or with undefined after the user has signed out or the session has ended.
 */
export type OnSessionChange = (session: AuthSession | undefined) => void | Promise<void>

export interface SessionKeeperSettings {
  timing: Timing
  /** Exchanges a refresh token, with retries. */
  exchange: (refreshToken: string) => Promise<LoggedIn>
}

/** The tokens in the answer to a sign-in or a refresh. */
export type TokenAnswer = Pick<LoggedIn, 'token' | 'refresh_token' | 'expires_in'> &
  Partial<Pick<LoggedIn, 'device_token'>>

/** The state of one sign-in; refreshes change it in place. */
interface SessionState {
  session: AuthSession
  /** From when the token is renewed before use, and when it expires, both by the monotonic clock. */
  renewAtMs: number
  endsAtMs: number
  /**
   * The token before the last refresh: if a call with this token is refused, no further refresh is needed.
   */
  previousToken: string | undefined
  /** The running refresh, shared by all callers. */
  refreshing: Promise<LoggedIn> | undefined
}

/**
 * How long before its expiry a token is renewed, milliseconds. A short-lived token is renewed at half its
 * lifetime, so that it is used for some calls.
 */
const RENEW_BEFORE_MS = 30_000

/**
 * Holds the session of the signed-in user in memory and renews its token, before it expires or when the
 * service refuses it as expired. Concurrent callers share one refresh.
 */
export class SessionKeeper {
  readonly #settings: SessionKeeperSettings
  readonly #listeners = new Set<OnSessionChange>()
  /** Sent with logins as proof that this device has signed in before; it outlives the session. */
  deviceToken: string | undefined
  #current: SessionState | undefined
  /**
   * Whether the service ended the session. Then calls have no credential until the application sets a session
   * or signs in.
   */
  #isEnded = false

  constructor(settings: SessionKeeperSettings) {
    this.#settings = settings
  }

  /** The current session. */
  get session(): AuthSession | undefined {
    return this.#current?.session
  }

  /** Replaces the session, or removes it. */
  set(session: AuthSession | undefined): void {
    this.#isEnded = false
    if (isSame(session, this.session)) return
    this.#current = session && this.#stateOf(session)
    this.#notify()
  }

  /** Sets the session from the answer to a sign-in. */
  signIn(answer: TokenAnswer): void {
    this.#isEnded = false
    this.deviceToken = answer.device_token ?? this.deviceToken
    this.#current = this.#stateOf(this.#sessionOf(answer))
    this.#notify()
  }

  /** @returns a function that removes the current session, but not a later one */
  sessionRemover(): () => void {
    const current = this.#current
    return () => {
      if (!this.#current || this.#current === current) this.set(undefined)
    }
  }

  /** Calls `listener` at each change. @returns a function that removes the listener */
  listen(listener: OnSessionChange): () => void {
    // Wrapped in a new function, so that a listener added twice is called twice and can be removed
    // separately.
    const wrapped: OnSessionChange = (session) => listener(session)
    this.#listeners.add(wrapped)
    return () => void this.#listeners.delete(wrapped)
  }

  /**
   * Renews the token now, or waits for a running refresh.
   * @throws ServiceError `no_session` if no user is signed in; `refresh_…` if the session has ended
   */
  async refresh(signal: AbortSignal | undefined): Promise<LoggedIn> {
    signal?.throwIfAborted()
    if (!this.#current) throw new ServiceError(0, 'No user is signed in', { code: 'no_session' })
    return unlessAborted(this.#refresh(this.#current), signal)
  }

  /**
   * Records that the service refused a token as expired, so that the next call renews it.
   * @returns whether a newer token is possible
   */
  markExpired(credential: string): boolean {
    const current = this.#current
    if (current?.session.token === credential) {
      current.renewAtMs = -Infinity
      current.endsAtMs = -Infinity
      return true
    }
    return current !== undefined && current.previousToken === credential
  }

  /**
   * A source that gives the token of the session or, without a session, the credential of `fallback`. After
   * the service has ended a session, the fallback is not used: a user's call must not be sent with a key that
   * has more permissions.
   */
  credentialSource(fallback: () => Promise<string | undefined>): CredentialSource {
    return {
      current: async (signal) => {
        if (this.#current) return this.#tokenOf(this.#current, signal)
        return this.#isEnded ? undefined : fallback()
      },
      markExpired: (credential) => this.markExpired(credential),
    }
  }

  async #tokenOf(state: SessionState, signal: AbortSignal): Promise<string> {
    const { monotonicMs } = this.#settings.timing
    if (monotonicMs() < state.renewAtMs) return state.session.token
    try {
      // The token of this session, even if another one was set during the refresh: the call belongs to this
      // user.
      return (await unlessAborted(this.#refresh(state), signal)).token
    } catch (error) {
      if (signal.aborted || isEnd(error) || monotonicMs() >= state.endsAtMs) throw error
      return state.session.token
    }
  }

  #refresh(state: SessionState): Promise<LoggedIn> {
    state.refreshing ??= this.#exchange(state).finally(() => {
      state.refreshing = undefined
    })
    return state.refreshing
  }

  async #exchange(state: SessionState): Promise<LoggedIn> {
    try {
      const answer = await this.#settings.exchange(state.session.refresh_token)
      const { session, renewAtMs, endsAtMs } = this.#stateOf(this.#sessionOf(answer))
      if (this.#current === state) this.deviceToken = answer.device_token ?? this.deviceToken
      state.previousToken = state.session.token
      state.session = session
      state.renewAtMs = renewAtMs
      state.endsAtMs = endsAtMs
      if (this.#current === state) this.#notify()
      return answer
    } catch (error) {
      if (isEnd(error) && this.#current === state) {
        this.#current = undefined
        this.#isEnded = true
        this.#notify()
      }
      throw error
    }
  }

  #sessionOf(answer: TokenAnswer): AuthSession {
    const { token, refresh_token, expires_in } = answer
    const expires_at_ms = this.#settings.timing.nowMs() + expires_in * 1000
    return { token, refresh_token, expires_at_ms }
  }

  #stateOf(session: AuthSession): SessionState {
    const { nowMs, monotonicMs } = this.#settings.timing
    // If the expiry is unknown, the token is renewed after the service refuses it.
    const leftMs = session.expires_at_ms === undefined ? Infinity : session.expires_at_ms - nowMs()
    const endsAtMs = monotonicMs() + leftMs
    return {
      // A frozen copy, because the application may change its object.
      session: Object.freeze({ ...session }),
      renewAtMs: leftMs === Infinity ? Infinity : endsAtMs - Math.min(RENEW_BEFORE_MS, leftMs / 2),
      endsAtMs,
      previousToken: undefined,
      refreshing: undefined,
    }
  }

  #notify(): void {
    for (const listener of this.#listeners) {
      // Not awaited: an error of a listener is reported as uncaught and does not affect the call.
      void callListener(listener, this.session)
    }
  }
}

async function callListener(listener: OnSessionChange, session: AuthSession | undefined): Promise<void> {
  await listener(session)
}

function isSame(a: AuthSession | undefined, b: AuthSession | undefined): boolean {
  return (
    a?.token === b?.token && a?.refresh_token === b?.refresh_token && a?.expires_at_ms === b?.expires_at_ms
  )
}

/** Whether an error means that the session has ended, and not only that the service is unavailable. */
function isEnd(error: unknown): boolean {
  return error instanceof ServiceError && error.status === 401 && error.code.startsWith('refresh_')
}

/** Waits for a shared promise; the signal ends only this caller's waiting. */
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
