import type * as auth from '../wire/auth.js'
import type * as passkeys from '../wire/passkeys.js'
import type { CallOptions } from './types.js'

/** The session of whoever is signed in. Store it somewhere safe to continue after a restart (`setSession`). */
export interface AuthSession {
  /** The JWT that calls are sent with. */
  readonly token: string
  /** Exchanged for the next token; each works once. */
  readonly refresh_token: string
  /** When the token expires, Unix milliseconds of this machine's clock; without it, the service's refusal shows it. */
  readonly expires_at_ms?: number | undefined
}

/** E-mail and password; a `device_token` in place of the client's own. */
export interface Credentials extends auth.LoginBody {}

/** A JSON object of the application's, embedded in every token of its user and readable by whoever holds one. */
export type Metadata = auth.UserMetadataBody['metadata']

/** The current password and the new one. */
export interface PasswordChange extends auth.PasswordChangeBody {}

/** The token of a password reset and the new password. */
export interface PasswordReset extends auth.PasswordResetBody {}

/** Answer to registering: without tokens while the e-mail must be verified first. */
export interface Registered extends auth.Registered {}

/** Answer to a login. */
export interface LoggedIn extends auth.LoggedIn {}

/** Answer to asking for a magic link or a mail that verifies: the token itself where the service sends no mail. */
export interface LinkSent extends auth.LinkSent {}

/** Answer to a valid magic link. */
export interface MagicLinkVerified extends auth.MagicLinkVerified {}

/** Options for making a new passkey, and the session for it. */
export interface PasskeyCreation extends passkeys.PasskeyCreation {}

/** Options for asking for a passkey, and the session for it. */
export interface PasskeyRequest extends passkeys.PasskeyRequest {}

/** Answer to a passkey that was registered. */
export interface PasskeyRegistered extends passkeys.PasskeyRegistered {}

/** Answer to a sign-in by passkey. */
export interface PasskeySignedIn extends auth.MagicLinkVerified {}

/** The passkeys of the signed-in user, the oldest first. */
export interface PasskeyPage extends passkeys.PasskeyPage {}

/** Answer to deleting a passkey. */
export interface PasskeyDeleted extends passkeys.PasskeyDeleted {}

/** Answer to a refresh. */
export interface Refreshed extends auth.LoggedIn {}

/** Answer to a logout: how many sessions ended. */
export interface LoggedOut extends auth.LoggedOut {}

/** Answer to a verified e-mail. */
export interface EmailVerified extends auth.EmailVerified {}

/** Answer to revoking a token. */
export interface Revoked extends auth.Revoked {}

/** Whether the service has sign-in. */
export interface AuthStatus extends auth.AuthStatus {}

/** The signed-in user as stored now. */
export interface Me extends auth.Me {}

/** Answer to replacing one's user_metadata. */
export interface UserMetadataUpdated extends auth.UserMetadataUpdated {}

/** Answer to a changed password. */
export interface PasswordChanged extends auth.PasswordChanged {}

/** Answer to asking for a password reset, the same whether the account exists or not. */
export interface PasswordResetRequested extends auth.LinkSent {}

/** Answer to a password set by a reset. */
export interface PasswordWasReset extends auth.PasswordWasReset {}

/** The sessions of the signed-in user. */
export interface SessionPage extends auth.SessionPage {}

/** Answer to ending one session. */
export interface SessionEnded extends auth.SessionEnded {}

/** One page of users; `total` counts all. */
export interface UserPage extends auth.UserPage {}

/** A user's failed logins are forgotten. */
export interface UserUnlocked extends auth.UserUnlocked {}

/** A user's sessions were ended. */
export interface UserLoggedOut extends auth.UserLoggedOut {}

/** Where a user is signed in. */
export interface UserSessions extends auth.UserSessions {}

/** A user as the service's administrator sees it. */
export type User = auth.UserPage['users'][number]

/** Answer to deleting a user. */
export interface UserDeleted extends auth.UserDeleted {}

/** Answer to replacing a user's app_metadata. */
export interface AppMetadataUpdated extends auth.AppMetadataUpdated {}

/** Public keys for checking tokens (RFC 7517). */
export interface Jwks extends auth.Jwks {}

/** Options of a logout. */
export interface LogoutOptions extends CallOptions {
  /** This session (the default), all but this one, or all of the user's. */
  scope?: 'local' | 'others' | 'global' | undefined
}

/** Options of listing users. */
export interface ListUsersOptions extends CallOptions {
  /** Users in the page. */
  limit?: number | undefined
  /** Only users whose e-mails begin with this. */
  prefix?: string | undefined
  /** `next_cursor` of the page before. */
  cursor?: string | undefined
}
