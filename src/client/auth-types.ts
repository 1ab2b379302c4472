import type * as auth from '../wire/auth.js'
import type * as passkeys from '../wire/passkeys.js'
import type { CallOptions } from './types.js'

/** The session of the signed-in user. Store it safely to restore it after a restart (`setSession`). */
export interface AuthSession {
  /** The JWT that is sent with calls. */
  readonly token: string
  /** Exchanged for the next token; valid for one exchange. */
  readonly refresh_token: string
  /**
   * When the token expires, Unix milliseconds of this machine's clock. If absent, the token is renewed after
   * the service refuses it.
   */
  readonly expires_at_ms?: number | undefined
}

/** E-mail and password; a `device_token` replaces the one of the client. */
export interface Credentials extends auth.LoginBody {}

/**
 * A JSON object of the application, included in every token of the user and readable by anyone who has such a
 * token.
 */
export type Metadata = auth.UserMetadataBody['metadata']

/** The current password and the new one. */
export interface PasswordChange extends auth.PasswordChangeBody {}

/** The token of a password reset, and the new password. */
export interface PasswordReset extends auth.PasswordResetBody {}

/** Answer to a registration; has no tokens if the e-mail must be verified first. */
export interface Registered extends auth.Registered {}

/** Answer to a login. */
export interface LoggedIn extends auth.LoggedIn {}

/**
 * Answer to a request for a magic link or a verification mail; contains the token if the service sends no
 * mail.
 */
export interface LinkSent extends auth.LinkSent {}

/** Answer to a valid magic link. */
export interface MagicLinkVerified extends auth.MagicLinkVerified {}

/** Options for creating a passkey, and the token of the passkey session. */
export interface PasskeyCreation extends passkeys.PasskeyCreation {}

/** Options for requesting a passkey, and the token of the passkey session. */
export interface PasskeyRequest extends passkeys.PasskeyRequest {}

/** Answer to the registration of a passkey. */
export interface PasskeyRegistered extends passkeys.PasskeyRegistered {}

/** Answer to a sign-in by passkey. */
export interface PasskeySignedIn extends auth.MagicLinkVerified {}

/** The passkeys of the signed-in user, oldest first. */
export interface PasskeyPage extends passkeys.PasskeyPage {}

/** Answer to the deletion of a passkey. */
export interface PasskeyDeleted extends passkeys.PasskeyDeleted {}

/** Answer to a refresh. */
export interface Refreshed extends auth.LoggedIn {}

/** Answer to a logout: how many sessions ended. */
export interface LoggedOut extends auth.LoggedOut {}

/** Answer to the verification of an e-mail. */
export interface EmailVerified extends auth.EmailVerified {}

/** Answer to the revocation of a token. */
export interface Revoked extends auth.Revoked {}

/** Whether sign-in is enabled. */
export interface AuthStatus extends auth.AuthStatus {}

/** The signed-in user as currently stored. */
export interface Me extends auth.Me {}

/** Answer to replacing the user's own user_metadata. */
export interface UserMetadataUpdated extends auth.UserMetadataUpdated {}

/** Answer to a password change. */
export interface PasswordChanged extends auth.PasswordChanged {}

/** Answer to a request for a password reset; the same whether the account exists or not. */
export interface PasswordResetRequested extends auth.LinkSent {}

/** Answer to a password reset. */
export interface PasswordWasReset extends auth.PasswordWasReset {}

/** The sessions of the signed-in user. */
export interface SessionPage extends auth.SessionPage {}

/** Answer to ending one session. */
export interface SessionEnded extends auth.SessionEnded {}

/** One page of users; `total` counts all. */
export interface UserPage extends auth.UserPage {}

/** Answer to unlocking a user: the failed logins were reset. */
export interface UserUnlocked extends auth.UserUnlocked {}

/** Answer to ending the sessions of a user. */
export interface UserLoggedOut extends auth.UserLoggedOut {}

/** The sessions of a user. */
export interface UserSessions extends auth.UserSessions {}

/** A user as administrators see it. */
export type User = auth.UserPage['users'][number]

/** Answer to the deletion of a user. */
export interface UserDeleted extends auth.UserDeleted {}

/** Answer to replacing a user's app_metadata. */
export interface AppMetadataUpdated extends auth.AppMetadataUpdated {}

/** Public keys that verify tokens (RFC 7517). */
export interface Jwks extends auth.Jwks {}

/** Options of a logout. */
export interface LogoutOptions extends CallOptions {
  /** This session (the default), all other sessions of the user, or all sessions of the user. */
  scope?: 'local' | 'others' | 'global' | undefined
}

/** Options for listing users. */
export interface ListUsersOptions extends CallOptions {
  /** Maximum number of users in the page. */
  limit?: number | undefined
  /** Only users whose e-mails begin with this text. */
  prefix?: string | undefined
  /** Only the user with this id. */
  userId?: string | undefined
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined
}
