import type { Timing } from './backoff.js'
import { ServiceError } from './errors.js'
import type { CredentialSource } from './http.js'
import type { AuthSession, Refreshed } from './auth-types.js'

/** Called with the current session; with undefined when nobody is signed in any more. */
export type OnSessionChange = (session: AuthSession | undefined) => void | Promise<void>

/** What a session keeper needs. */
export interface SessionKeeperSettings {
  timing: Timing
  /** Exchanges a refresh token, with as many tries as it takes. */
  exchange: (refreshToken: string) => Promise<Refreshed>
}

/** Tokens as a sign-in or a refresh answers them. */
export type TokenAnswer = Pick<Refreshed, 'token' | 'refresh_token' | 'expires_in'> &
  Partial<Pick<Refreshed, 'device_token'>>

/** One sign-in: the same object through all its refreshes. */
interface Held {
  session: AuthSession
  /** When the token is renewed before use, and when it expires, both by the monotonic clock. */
  renewAtMs: number
  endsAtMs: number
  /** The token before the last refresh: a call that was sent with it and refused needs no further refresh. */
  tokenBefore: string | undefined
  /** The running refresh, shared by all callers that need one. */
  refreshing: Promise<Refreshed> | undefined
}

/**
 * How long before its end a token is renewed, milliseconds; short-lived ones at half their lifetime, so that each is
 * used for some calls.
 */
const RENEW_BEFORE_MS = 30_000

/**
 * Keeps the session of whoever is signed in, in memory, and renews its token: before it expires or when the service
 * says that it has, once for all callers.
 */
export class SessionKeeper {
  readonly #settings: SessionKeeperSettings
  readonly #listeners = new Set<OnSessionChange>()
  /** Shows the next login that this device has signed in before; it outlives the session. */
  deviceToken: string | undefined
  #held: Held | undefined
  /** The service ended the session: no other credential replaces it until the application says so. */
  #isEnded = false

  constructor(settings: SessionKeeperSettings) {
    this.#settings = settings
  }

  /** The current session. */
  get session(): AuthSession | undefined {
    return this.#held?.session
  }

  /** Sets another session, or none. */
  set(session: AuthSession | undefined): void {
    this.#isEnded = false
    if (isSame(session, this.session)) return
    this.#held = session && this.#heldOf(session)
    this.#tell()
  }

  /** Sets the session of a sign-in. */
  signIn(answer: TokenAnswer): void {
    this.#isEnded = false
    this.deviceToken = answer.device_token ?? this.deviceToken
    this.#held = this.#heldOf(this.#sessionOf(answer))
    this.#tell()
  }

  /** Returns a function that drops the current session, but not a later one. */
  dropper(): () => void {
    const held = this.#held
    return () => {
      if (!this.#held || this.#held === held) this.set(undefined)
    }
  }

  /** Calls `listener` at each change from now on, until the returned function is called. */
  listen(listener: OnSessionChange): () => void {
    // A function of its own: a listener that is added twice is called twice and removed once.
    const own: OnSessionChange = (session) => listener(session)
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  /**
   * Renews the token now, or waits for a refresh that is running already.
   * @throws ServiceError `no_session` when nobody is signed in; `refresh_…` when the session has ended
   */
  async refresh(signal: AbortSignal | undefined): Promise<Refreshed> {
    signal?.throwIfAborted()
    if (!this.#held) throw new ServiceError(0, 'Expected a session to refresh', { code: 'no_session' })
    return unlessAborted(this.#refresh(this.#held), signal)
  }

  /** Notes that the token is not accepted any more, so that the next call renews it. */
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
   * The session's token; while there is no session, the credential of `fallback`. After a session that the service
   * ended the fallback is not used: what a user wanted to do must not be done with a key that may do more.
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
      // The token of this session, even if another was set meanwhile: a call is sent for the user who made it.
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
    // If the expiry is not known, the service's refusal shows it.
    const leftMs = session.expires_at_ms === undefined ? Infinity : session.expires_at_ms - nowMs()
    const endsAtMs = monotonicMs() + leftMs
    return {
      // A frozen copy, since the application keeps its own object.
      session: Object.freeze({ ...session }),
      renewAtMs: leftMs === Infinity ? Infinity : endsAtMs - Math.min(RENEW_BEFORE_MS, leftMs / 2),
      endsAtMs,
      tokenBefore: undefined,
      refreshing: undefined,
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) {
      // Not awaited: a listener that throws is reported as uncaught and does not affect the call.
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

/** Waits for something that others wait for too: the signal ends only this waiting. */
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
