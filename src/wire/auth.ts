import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { documented } from './documented.js'
import { ada, adaTokens, deviceToken, oneTimeToken } from './example-values.js'
import { JsonObject, NextCursor, UnixMs } from './primitives.js'

/*
 * Bodies and answers of the auth routes. The routes judge what a text may contain, so that a wrong e-mail, password or
 * token is answered with its own code and not with `validation_failed`.
 */

const UserId = Type.String({
  pattern: '^usr_[0-9a-f]{32}$',
  description: 'A user; also the `sub` of its tokens',
})
const Email = Type.String({ description: 'Trimmed, lower-cased, NFC: one mailbox is one account' })
const NewPassword = Type.String({ description: 'At least 8 characters and at most 1,024 bytes' })
const SessionId = Type.String({ pattern: '^[0-9a-f]{32}$', description: 'One login of one user' })
const AccessToken = Type.String({
  description:
    'JWT, sent as Bearer. `auth_time` says when the user signed in, `email_verified` whether the address was ' +
    'confirmed; `verified_email` is there once the user has come in by the mailbox',
})
const RefreshToken = Type.String({
  description: `Exchanged once at the refresh route for the next pair. Sent again within ${limits.refreshRepeatMs / 1_000} seconds of its exchange it gives the same successor; later it ends the session`,
})
const DeviceToken = Type.String({
  description:
    'Says that this device has signed in as this user. Kept over a logout and sent with the next login, it has that ' +
    'login counted by itself: failures of others do not lock it. It lets nobody in, and works for 400 days',
})
const KnownDevice = Type.Optional(
  Type.String({
    description:
      'The `device_token` of an earlier answer. Failed logins with it lock this device alone, and the lock of an e-mail ' +
      'does not hold for it. One that is not of the user, or from before the password was last set, is ignored',
  }),
)
const ExpiresIn = Type.Integer({ minimum: 1, description: 'Seconds until `token` expires' })
const OneTimeToken = Type.String({ description: 'Works once' })
const AppMetadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Set with the root key, embedded in every token and readable by whoever holds one',
})
const UserMetadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Set by the user, embedded in every token and readable by whoever holds one',
})
const TokenType = Type.Literal('Bearer')

const tokens = {
  token: AccessToken,
  refresh_token: RefreshToken,
  token_type: TokenType,
  expires_in: ExpiresIn,
}

const signedIn = { ...tokens, device_token: DeviceToken }

const whose = { user_id: UserId, email: Email }

const kid = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'
const signedInExample = { ...adaTokens, device_token: deviceToken }
const metadata = { app_metadata: { role: 'editor' }, user_metadata: { display_name: 'Ada' } }
const userExample = {
  ...ada,
  verified: true,
  ...metadata,
  created_at_ms: 1_760_000_000_000,
  last_login_at_ms: 1_760_000_360_000,
}
const password = 'correct horse battery staple'
const sid = '8d1f6c3a5b7e4920a1c3e5f708192a3b'

/** Body of POST /v1/auth/register. */
export const RegisterBody = Type.Object(
  { email: Email, password: NewPassword },
  { additionalProperties: false },
)
export type RegisterBody = Static<typeof RegisterBody>
documented('RegisterBody', RegisterBody, { register: { email: ada.email, password } })

/** Answer to registering: without tokens while the e-mail must be verified first. */
export const Registered = Type.Object({
  user_id: Type.Union([UserId, Type.Null()], {
    description: 'Null while the e-mail must be verified first: the answer tells not whether it was taken',
  }),
  email: Email,
  token: Type.Union([AccessToken, Type.Null()], {
    description: 'Null while the e-mail must be verified first',
  }),
  refresh_token: Type.Union([RefreshToken, Type.Null()]),
  token_type: TokenType,
  expires_in: Type.Union([ExpiresIn, Type.Null()]),
})
export type Registered = Static<typeof Registered>
documented('Registered', Registered, {
  signedIn: { ...ada, ...adaTokens },
  'to be verified': {
    user_id: null,
    email: ada.email,
    token: null,
    refresh_token: null,
    token_type: 'Bearer',
    expires_in: null,
  },
})

/** Body of POST /v1/auth/login. */
export const LoginBody = Type.Object(
  { email: Email, password: Type.String(), device_token: KnownDevice },
  { additionalProperties: false },
)
export type LoginBody = Static<typeof LoginBody>
documented('LoginBody', LoginBody, {
  login: { email: ada.email, password },
  'from a device that has signed in before': { email: ada.email, password, device_token: deviceToken },
})

/** Answer to a login, and to a refresh: then both tokens are new. */
export const LoggedIn = Type.Object(signedIn)
export type LoggedIn = Static<typeof LoggedIn>
documented('Tokens', LoggedIn, { tokens: signedInExample })

/** Body that asks for a mail: a magic link, a password reset or the verification of the address. */
export const EmailBody = Type.Object({ email: Email }, { additionalProperties: false })
documented('EmailBody', EmailBody, { email: { email: ada.email } })

/** Answer to asking for a mail, the same whether the account exists or not. */
export const LinkSent = Type.Object({
  sent: Type.Boolean({
    description:
      'Whether mails go out here. One mailbox is sent four mails of a kind at once and one more each ten minutes; that ' +
      'a further one is not sent is told to nobody',
  }),
  token: Type.Optional(
    Type.String({ description: 'The token itself, where mail is off; to whom, docs/OPERATIONS.md says' }),
  ),
})
export type LinkSent = Static<typeof LinkSent>
documented('LinkSent', LinkSent, {
  mailed: { sent: true },
  'mail is off': { sent: false, token: oneTimeToken },
})

/** Body that brings the token of a magic link or of the mail that verifies an address. */
export const OneTimeTokenBody = Type.Object({ token: OneTimeToken }, { additionalProperties: false })
documented('OneTimeTokenBody', OneTimeTokenBody, { token: { token: oneTimeToken } })

/** Answer to a valid magic link. */
export const MagicLinkVerified = Type.Object({ ...signedIn, ...whose, verified: Type.Boolean() })
export type MagicLinkVerified = Static<typeof MagicLinkVerified>
documented('MagicLinkVerified', MagicLinkVerified, {
  signedIn: { ...signedInExample, ...ada, verified: true },
})

/** Body of POST /v1/auth/refresh. */
export const RefreshBody = Type.Object({ refresh_token: RefreshToken }, { additionalProperties: false })
export type RefreshBody = Static<typeof RefreshBody>
documented('RefreshBody', RefreshBody, { refresh: { refresh_token: adaTokens.refresh_token } })

/** Answer to a logout. */
export const LoggedOut = Type.Object({
  logged_out: Type.Literal(true),
  sessions: Type.Integer({ minimum: 0, description: 'Sessions that were ended' }),
})
export type LoggedOut = Static<typeof LoggedOut>
documented('LoggedOut', LoggedOut, { out: { logged_out: true, sessions: 1 } })

/** Answer to a verified e-mail. */
export const EmailVerified = Type.Object({ verified: Type.Literal(true), ...whose })
export type EmailVerified = Static<typeof EmailVerified>
documented('EmailVerified', EmailVerified, { verified: { verified: true, ...ada } })

/** Answer to revoking a token. */
export const Revoked = Type.Object({
  revoked: Type.Literal(true),
  jti: Type.String({ description: 'The `jti` of the token that sent the request' }),
})
export type Revoked = Static<typeof Revoked>
documented('Revoked', Revoked, { revoked: { revoked: true, jti: '0b6f2f5e7c1d4a3e9b8a7c6d5e4f3a2b' } })

/** Answer of GET /v1/auth/status. */
export const AuthStatus = Type.Object({ enabled: Type.Boolean({ description: 'Whether the add-on is on' }) })
export type AuthStatus = Static<typeof AuthStatus>
documented('AuthStatus', AuthStatus, { on: { enabled: true }, off: { enabled: false } })

const NullableMs = Type.Union([UnixMs, Type.Null()])

const shownUser = {
  ...whose,
  verified: Type.Boolean(),
  app_metadata: AppMetadata,
  user_metadata: UserMetadata,
  created_at_ms: UnixMs,
  last_login_at_ms: NullableMs,
}

/** Answer of GET /v1/auth/me: the user as stored now; the token may be older. */
export const Me = Type.Object(shownUser)
export type Me = Static<typeof Me>
documented('Me', Me, { me: userExample })

/** Body of PATCH /v1/auth/me/user-metadata: the whole new object. */
export const UserMetadataBody = Type.Object({ metadata: JsonObject }, { additionalProperties: false })
export type UserMetadataBody = Static<typeof UserMetadataBody>
documented('MetadataBody', UserMetadataBody, { metadata: { metadata: { role: 'editor' } } })

/** Answer to replacing one's user_metadata. */
export const UserMetadataUpdated = Type.Object({ email: Email, user_metadata: UserMetadata })
export type UserMetadataUpdated = Static<typeof UserMetadataUpdated>
documented('UserMetadataUpdated', UserMetadataUpdated, {
  updated: { email: ada.email, user_metadata: metadata.user_metadata },
})

/** Answer of GET /v1/auth/users. */
export const UserPage = Type.Object({
  users: Type.Array(
    Type.Object({
      ...shownUser,
      email_hmac: Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'What audit records of logins name the e-mail by, those that failed too',
      }),
      locked_until_ms: Type.Union([UnixMs, Type.Null()], {
        description: 'Until when logins by password are refused after failed ones; null when they are not',
      }),
      passkeys: Type.Integer({ minimum: 0, description: 'How many passkeys the user has' }),
      mailbox_proven: Type.Boolean({
        description:
          'Whether the user has come in by its mailbox, or a provider vouched for it: its tokens carry verified_email',
      }),
    }),
  ),
  total: Type.Integer({ minimum: 0, description: 'All users that match, on this page or not' }),
  next_cursor: NextCursor,
})
export type UserPage = Static<typeof UserPage>
documented('UserPage', UserPage, {
  page: {
    users: [
      {
        ...userExample,
        email_hmac: '5b'.repeat(32),
        locked_until_ms: null,
        passkeys: 1,
        mailbox_proven: true,
      },
    ],
    total: 1,
    next_cursor: null,
  },
})

/** Answer to deleting a user. */
export const UserDeleted = Type.Object({ deleted: Type.Literal(true), ...whose })
export type UserDeleted = Static<typeof UserDeleted>
documented('UserDeleted', UserDeleted, { deleted: { deleted: true, ...ada } })

/** Answer to forgetting a user's failed logins. */
export const UserUnlocked = Type.Object({
  unlocked: Type.Boolean({ description: 'Whether logins were locked' }),
  ...whose,
})
export type UserUnlocked = Static<typeof UserUnlocked>
documented('UserUnlocked', UserUnlocked, { unlocked: { unlocked: true, ...ada } })

/** Answer to ending a user's sessions. */
export const UserLoggedOut = Type.Object({
  sessions_ended: Type.Integer({ minimum: 0, description: 'How many sessions there were' }),
  ...whose,
})
export type UserLoggedOut = Static<typeof UserLoggedOut>
documented('UserLoggedOut', UserLoggedOut, { ended: { sessions_ended: 2, ...ada } })

/** Body of PATCH /v1/auth/users/:email/app-metadata: the whole new object. */
const clear = Type.Boolean({ description: 'Empties user_metadata, which may leave no room for app_metadata' })
export const AppMetadataBody = Type.Object(
  { ...UserMetadataBody.properties, clear_user_metadata: Type.Optional(clear) },
  { additionalProperties: false },
)
documented('AppMetadataBody', AppMetadataBody, { metadata: { metadata: { role: 'editor' } } })

/** Answer to replacing a user's app_metadata. */
export const AppMetadataUpdated = Type.Object({ email: Email, app_metadata: AppMetadata })
export type AppMetadataUpdated = Static<typeof AppMetadataUpdated>
documented('AppMetadataUpdated', AppMetadataUpdated, {
  updated: { email: ada.email, app_metadata: metadata.app_metadata },
})

/** Public keys for checking tokens (RFC 7517, RFC 8037): the one in force, the next, and one just retired. */
export const Jwks = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('OKP'),
      crv: Type.Literal('Ed25519'),
      x: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$', description: 'Public key, base64url' }),
      kid: Type.String({ description: 'RFC 7638 thumbprint' }),
      alg: Type.Literal('EdDSA'),
      use: Type.Literal('sig'),
    }),
  ),
})
export type Jwks = Static<typeof Jwks>
const x = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
documented('Jwks', Jwks, {
  keys: { keys: [{ kty: 'OKP', crv: 'Ed25519', x, kid, alg: 'EdDSA', use: 'sig' }] },
})

/** Body of POST /v1/auth/password/change. */
export const PasswordChangeBody = Type.Object(
  { current_password: Type.String(), new_password: NewPassword, device_token: KnownDevice },
  { additionalProperties: false },
)
export type PasswordChangeBody = Static<typeof PasswordChangeBody>
documented('PasswordChangeBody', PasswordChangeBody, {
  change: { current_password: password, new_password: 'seven green bicycles' },
})

/** Answer to a changed password: links that were sent before have ended. */
export const PasswordChanged = Type.Object({ changed: Type.Literal(true) })
export type PasswordChanged = Static<typeof PasswordChanged>
documented('PasswordChanged', PasswordChanged, { changed: { changed: true } })

/** Body of POST /v1/auth/password/reset. */
export const PasswordResetBody = Type.Object(
  {
    token: OneTimeToken,
    password: NewPassword,
    remove_passkeys: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'Whether all passkeys of the user go with the old password: for who fears for the account',
      }),
    ),
  },
  { additionalProperties: false },
)
export type PasswordResetBody = Static<typeof PasswordResetBody>
documented('PasswordResetBody', PasswordResetBody, {
  reset: { token: oneTimeToken, password },
  'with all passkeys': { token: oneTimeToken, password, remove_passkeys: true },
})

/** Answer to a password set by a reset: no tokens, as the user signs in with the new password. */
export const PasswordWasReset = Type.Object({ reset: Type.Literal(true), ...whose })
export type PasswordWasReset = Static<typeof PasswordWasReset>
documented('PasswordWasReset', PasswordWasReset, { reset: { reset: true, ...ada } })

const shownSession = {
  sid: SessionId,
  created_at_ms: UnixMs,
  last_used_at_ms: UnixMs,
  amr: Type.Array(Type.String(), { description: 'How the user came in (RFC 8176)' }),
}
const sessionExample = {
  sid,
  created_at_ms: 1_760_000_000_000,
  last_used_at_ms: 1_760_000_360_000,
  amr: ['pwd'],
}

/** Answer of GET /v1/auth/users/:email/sessions. */
export const UserSessions = Type.Object({ ...whose, sessions: Type.Array(Type.Object(shownSession)) })
export type UserSessions = Static<typeof UserSessions>
documented('UserSessions', UserSessions, { sessions: { ...ada, sessions: [sessionExample] } })

/** Answer of GET /v1/auth/sessions. */
export const SessionPage = Type.Object({
  sessions: Type.Array(
    Type.Object({
      ...shownSession,
      current: Type.Boolean({ description: 'Whether the token of the request belongs to it' }),
    }),
  ),
})
export type SessionPage = Static<typeof SessionPage>
documented('SessionPage', SessionPage, {
  sessions: {
    sessions: [{ ...sessionExample, current: true }],
  },
})

/** Answer of DELETE /v1/auth/sessions/:sid. */
export const SessionEnded = Type.Object({ ended: Type.Literal(true), sid: SessionId })
export type SessionEnded = Static<typeof SessionEnded>
documented('SessionEnded', SessionEnded, { ended: { ended: true, sid } })

/** Answer to rotating the key that signs tokens. */
export const SigningKeyRotated = Type.Object({
  kid: Type.String({ description: 'The key that signs from now on' }),
  next_kid: Type.String({ description: 'The key after it, published already' }),
  retired_until_ms: Type.Integer({
    minimum: 0,
    description: 'Until when tokens of the key before are taken',
  }),
})
export type SigningKeyRotated = Static<typeof SigningKeyRotated>
