import type * as auth from '../wire/auth.js'
import type { CallOptions } from './types.js'

// Answers and bodies as they are sent, by their names in src/wire.
export type {
  AppMetadataUpdated,
  AuthStatus,
  EmailVerified,
  Jwks,
  LinkSent,
  LoggedIn,
  LoggedOut,
  LoginBody,
  MagicLinkVerified,
  Me,
  PasswordChangeBody,
  PasswordChanged,
  PasswordResetBody,
  PasswordWasReset,
  Registered,
  Revoked,
  SessionEnded,
  SessionPage,
  UserDeleted,
  UserLoggedOut,
  UserMetadataUpdated,
  UserPage,
  UserSessions,
  UserUnlocked,
} from '../wire/auth.js'
export type {
  PasskeyCreation,
  PasskeyDeleted,
  PasskeyPage,
  PasskeyRegistered,
  PasskeyRequest,
} from '../wire/passkeys.js'

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

/**
 * A JSON object of the application, included in every token of the user and readable by anyone who has such a
 * token.
 */
export type Metadata = auth.UserMetadataBody['metadata']

/** A user as administrators see it. */
export type User = auth.UserPage['users'][number]

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
