import type { OnSessionChange, SessionKeeper } from './auth-session.js'
import type * as types from './auth-types.js'
import { ServiceError } from './errors.js'
import { type Call, type CredentialSource, type Transport, pathSegment } from './http.js'
import { OauthClient } from './oauth.js'
import { PasskeyClient } from './passkeys.js'
import type { CallOptions } from './types.js'
import { jsonText } from './json-text.js'

export interface AuthSettings {
  transport: Transport
  keeper: SessionKeeper
  /** Path before the routes: `/v1/auth`, or the path of an organism's namespace. */
  prefix: string
  /** The API key, for administration. */
  apiKey: CredentialSource
  /** The token of the signed-in user. */
  user: CredentialSource
}

/** A call whose path follows the prefix; not repeated by default. */
interface AuthCall extends Omit<Call, 'repeatable'> {
  repeatable?: boolean
}

/** A source whose credentials are never renewed. */
export function fixedSource(give: () => Promise<string | undefined>): CredentialSource {
  return { current: give, markExpired: () => false }
}

/** For routes that sign in, and for public ones. */
const noCredential = fixedSource(async () => undefined)

/**
 * The call that exchanges a refresh token. Safe to repeat: the server returns the same successor for ten
 * seconds.
 */
export function refreshCall(prefix: string, refreshToken: string): Call {
  const body = jsonText({ refresh_token: refreshToken })
  return { method: 'POST', path: `${prefix}/refresh`, body, repeatable: true, credential: noCredential }
}

/**
 * Sign-in, and the session of the signed-in user.
 *
 * After a sign-in, all calls of the client carry the token of the session. The token is renewed before it
 * expires, or when the service refuses it as expired. The session is in memory; use `onSessionChange` and
 * `setSession` to keep it over a restart. One client has one session: a server that acts for many users needs
 * one client for each.
 *
 * Methods reject as those of the client do. Without a license, all calls reject with 402 `license_required`,
 * except those that end access and those that list users and sessions.
 */
export class AuthClient {
  readonly #settings: AuthSettings

  /** Sign-in without a password, with a mailed token. */
  readonly magicLink = {
    /**
     * Requests a mail with a link. If the service sends no mail, the answer contains the token: to the root
     * key always, to other callers only on a development server that listens on loopback.
     */
    send: (email: string, options: CallOptions = {}): Promise<types.LinkSent> =>
      this.#sendLink('/magic-link/send', email, options),
    /** Signs in with the token of a link. Errors: 401 `invalid_token` if it is wrong, used or expired. */
    verify: (token: string, options: CallOptions = {}): Promise<types.MagicLinkVerified> =>
      this.#signIn<types.MagicLinkVerified>('/magic-link/verify', { token }, options),
  }

  /** Passkeys in a browser: sign-in without a password. */
  readonly passkeys: PasskeyClient

  /** Sign-in with Google or GitHub, in a browser. */
  readonly oauth: OauthClient

  /** Sessions of the signed-in user. */
  readonly sessions = {
    /** All active sessions. */
    list: (options: CallOptions = {}): Promise<types.SessionPage> => this.#read('/sessions', options),
    /** Ends a session and invalidates its tokens. */
    kill: (sid: string, options: CallOptions = {}): Promise<types.SessionEnded> =>
      this.#asUser({ method: 'DELETE', path: `/sessions/${pathSegment(sid)}` }, options),
  }

  /** Administration of users, with the API key of the client. */
  readonly users = {
    /** One page of users. */
    list: ({
      signal,
      limit,
      cursor,
      prefix,
      userId,
    }: types.ListUsersOptions = {}): Promise<types.UserPage> => {
      const query = { limit, cursor, prefix, user_id: userId }
      return this.#asAdmin({ method: 'GET', path: '/users', query, repeatable: true }, { signal })
    },
    /** The sessions of a user. Errors: NotFoundError. */
    sessions: (email: string, options: CallOptions = {}): Promise<types.UserSessions> =>
      this.#asAdmin(
        { method: 'GET', path: `/users/${pathSegment(email)}/sessions`, repeatable: true },
        options,
      ),
    /** Resets a user's failed logins, so that a locked user can sign in. Errors: NotFoundError. */
    unlock: (email: string, options: CallOptions = {}): Promise<types.UserUnlocked> =>
      this.#asAdmin({ method: 'POST', path: `/users/${pathSegment(email)}/unlock` }, options),
    /** Ends a user's sessions and invalidates their tokens. Errors: NotFoundError. */
    endSessions: (email: string, options: CallOptions = {}): Promise<types.UserLoggedOut> =>
      this.#asAdmin({ method: 'POST', path: `/users/${pathSegment(email)}/logout` }, options),
    /** Deletes a user and invalidates all tokens of the user. Errors: NotFoundError. */
    delete: (email: string, options: CallOptions = {}): Promise<types.UserDeleted> =>
      this.#asAdmin({ method: 'DELETE', path: `/users/${pathSegment(email)}` }, options),
    /**
     * Replaces a user's app_metadata; new tokens carry it. `clearUserMetadata` also empties user_metadata,
     * because both share one size limit. Errors: 422 `metadata_too_large`.
     */
    setAppMetadata: async (
      email: string,
      metadata: types.Metadata,
      { clearUserMetadata, ...options }: CallOptions & { clearUserMetadata?: boolean } = {},
    ): Promise<types.AppMetadataUpdated> => {
      const path = `/users/${pathSegment(email)}/app-metadata`
      const body = jsonText({ metadata, clear_user_metadata: clearUserMetadata })
      return this.#asAdmin({ method: 'PATCH', path, body, repeatable: true }, options)
    },
  }

  constructor(settings: AuthSettings) {
    this.#settings = settings
    const { transport, keeper, prefix } = settings
    this.oauth = new OauthClient({
      address: (path, query) => transport.address(prefix + path, query),
      signIn: (answer) => keeper.signIn(answer),
    })
    this.passkeys = new PasskeyClient({
      asUser: (method, path, { body, signal }) => {
        const json = body === undefined ? {} : { body: jsonText(body) }
        return this.#asUser({ method, path, repeatable: method === 'GET', ...json }, { signal })
      },
      post: (path, body, options) => this.#post(path, body, options),
      signIn: (path, body, options) => this.#signIn(path, body, options),
    })
  }

  /** The current session; undefined if no user is signed in. It contains tokens, so do not log it. */
  get session(): types.AuthSession | undefined {
    return this.#settings.keeper.session
  }

  /**
   * Restores a stored session, or removes the current one, without a request. After the service has ended a
   * session, calls are sent without a credential; `setSession(undefined)` ends that state.
   * @throws TypeError if a token is missing
   */
  setSession(session: types.AuthSession | undefined): void {
    if (session && !(isText(session.token) && isText(session.refresh_token))) {
      throw new TypeError('Expected a session with token and refresh_token')
    }
    this.#settings.keeper.set(session)
  }

  /**
   * Proof that this device has signed in before. Logins send it, so that failed logins from other devices do
   * not lock this device out (429 `account_locked`); it does not sign in by itself. It remains after a
   * logout. Store it with the session and set it here after a restart. Undefined before the first sign-in.
   */
  get deviceToken(): string | undefined {
    return this.#settings.keeper.deviceToken
  }

  set deviceToken(token: string | undefined) {
    this.#settings.keeper.deviceToken = token
  }

  /**
   * Calls `listener` with each new session: after a sign-in, a refresh or `setSession`; with undefined after
   * the session has ended. An error of the listener is reported as uncaught and does not affect the call that
   * changed the session.
   * @returns a function that removes the listener
   */
  onSessionChange(listener: OnSessionChange): () => void {
    return this.#settings.keeper.listen(listener)
  }

  /**
   * Creates a user and signs in. If e-mails must be verified first, the tokens are null and no session
   * begins.
   * Errors: 409 `email_exists`, 422 `weak_password`
   */
  register(credentials: types.LoginBody, options: CallOptions = {}): Promise<types.Registered> {
    return this.#signIn<types.Registered>('/register', credentials, options)
  }

  /** Signs in. Errors: 401 `invalid_credentials`, 429 `account_locked`, 403 `email_not_verified`. */
  login(credentials: types.LoginBody, options: CallOptions = {}): Promise<types.LoggedIn> {
    return this.#signIn<types.LoggedIn>('/login', this.#fromDevice(credentials), options)
  }

  /** Confirms the user's e-mail with the token of a mail. Errors: 400 `invalid_token`. */
  verifyEmail(token: string, options: CallOptions = {}): Promise<types.EmailVerified> {
    return this.#post('/verify-email', { token }, options)
  }

  /** Requests the mail for verifyEmail. The answer is the same as of magicLink.send. */
  sendVerifyEmail(email: string, options: CallOptions = {}): Promise<types.LinkSent> {
    return this.#sendLink('/verify-email/send', email, options)
  }

  /**
   * Renews the token now; calls also renew it automatically when needed. All callers share one refresh; a
   * caller's signal does not abort it for the others. Errors: `no_session`; 401 `refresh_invalid`,
   * `refresh_expired`, `refresh_reused`, which end the session
   */
  refresh(options: CallOptions = {}): Promise<types.LoggedIn> {
    return this.#settings.keeper.refresh(options.signal)
  }

  /**
   * Ends this session, the user's other sessions, or all, and removes an ended session from the client; a
   * failed call keeps it.
   */
  async logout(options: types.LogoutOptions = {}): Promise<types.LoggedOut> {
    const drop = this.#settings.keeper.sessionRemover()
    try {
      const call = { method: 'POST', path: '/logout', query: { scope: options.scope } } as const
      const answer = await this.#asUser<types.LoggedOut>(call, options)
      if (options.scope !== 'others') drop()
      return answer
    } catch (error) {
      // The service does not know the session any more.
      if (error instanceof ServiceError && error.status === 401) drop()
      throw error
    }
  }

  /** Revokes the current token but not the session: the next call renews the token. */
  async revoke(options: CallOptions = {}): Promise<types.Revoked> {
    const { keeper } = this.#settings
    const answer = await this.#asUser<types.Revoked>({ method: 'POST', path: '/revoke' }, options)
    if (keeper.session) keeper.markExpired(keeper.session.token)
    return answer
  }

  /** Whether the service has sign-in. */
  status(options: CallOptions = {}): Promise<types.AuthStatus> {
    return this.#send({ method: 'GET', path: '/status', repeatable: true, credential: noCredential }, options)
  }

  /** The signed-in user as currently stored. */
  me(options: CallOptions = {}): Promise<types.Me> {
    return this.#read('/me', options)
  }

  /** Replaces the user's own user_metadata; new tokens carry it. Errors: 422 `metadata_too_large`. */
  async updateUserMetadata(
    metadata: types.Metadata,
    options: CallOptions = {},
  ): Promise<types.UserMetadataUpdated> {
    const body = jsonText({ metadata })
    return this.#asUser({ method: 'PATCH', path: '/me/user-metadata', body, repeatable: true }, options)
  }

  /** Changes the password. Errors: 401 `invalid_credentials`, 422 `weak_password`. */
  async changePassword(
    change: types.PasswordChangeBody,
    options: CallOptions = {},
  ): Promise<types.PasswordChanged> {
    const body = jsonText(this.#fromDevice(change))
    return this.#asUser({ method: 'POST', path: '/password/change', body }, options)
  }

  /** Requests the mail for resetPassword. The answer is the same as of magicLink.send. */
  requestPasswordReset(email: string, options: CallOptions = {}): Promise<types.LinkSent> {
    return this.#sendLink('/password/reset-request', email, options)
  }

  /**
   * Sets a password with a mailed token; does not sign in. Errors: 400 `invalid_token`, 422 `weak_password`.
   */
  resetPassword(reset: types.PasswordResetBody, options: CallOptions = {}): Promise<types.PasswordWasReset> {
    return this.#post('/password/reset', reset, options)
  }

  /** The public keys that verify tokens. */
  jwks(options: CallOptions = {}): Promise<types.Jwks> {
    return this.#send({ method: 'GET', path: '/jwks', repeatable: true, credential: noCredential }, options)
  }

  async #signIn<R extends types.Registered | types.LoggedIn>(
    path: string,
    body: object,
    options: CallOptions,
  ): Promise<R> {
    const answer = await this.#post<R>(path, body, options)
    const { token, refresh_token, expires_in } = answer
    if (token !== null && refresh_token !== null && expires_in !== null) {
      const device = 'device_token' in answer ? { device_token: answer.device_token } : {}
      this.#settings.keeper.signIn({ token, refresh_token, expires_in, ...device })
    }
    return answer
  }

  /**
   * Adds the device token to a body with a password, unless the body has one. The token distinguishes a login
   * of this device from guesses of unknown clients.
   */
  #fromDevice<B extends types.LoginBody | types.PasswordChangeBody>(body: B): B {
    const { deviceToken } = this
    return deviceToken === undefined ? body : { device_token: deviceToken, ...body }
  }

  async #sendLink<R>(path: string, email: string, options: CallOptions): Promise<R> {
    const credential = this.#settings.apiKey
    return this.#send({ method: 'POST', path, body: jsonText({ email }), credential }, options)
  }

  /** Not repeated: a token is valid once, and failed logins are counted. */
  async #post<R>(path: string, body: object, options: CallOptions): Promise<R> {
    const credential = noCredential
    return this.#send({ method: 'POST', path, body: jsonText(body), credential }, options)
  }

  #read<R>(path: string, options: CallOptions): Promise<R> {
    return this.#asUser({ method: 'GET', path, repeatable: true }, options)
  }

  #asUser<R>(call: AuthCall, options: CallOptions): Promise<R> {
    return this.#send({ ...call, credential: this.#settings.user }, options)
  }

  #asAdmin<R>(call: AuthCall, options: CallOptions): Promise<R> {
    return this.#send({ ...call, credential: this.#settings.apiKey }, options)
  }

  #send<R>(call: AuthCall, options: CallOptions): Promise<R> {
    const path = this.#settings.prefix + call.path
    return this.#settings.transport.json({ repeatable: false, ...call, path, signal: options.signal })
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}
