import { Type, type Static } from 'typebox'
import { limits } from '../base/limits/limits.js'
import { documented } from './documented.js'
import { ada, adaTokens, deviceToken, oneTimeToken } from './example-values.js'
import { JsonObject, NextCursor, totalDescription, UnixMs } from './primitives.js'

/*
 * Bodies and answers of the auth routes. The routes check e-mails, passwords and tokens, so that a wrong one
 * is answered with a specific code instead of `validation_failed`.
 */

const UserId = Type.String({
  pattern: '^usr_[0-9a-f]{32}$',
  description: 'A user; also the `sub` of its tokens',
})
const Email = Type.String({ description: 'Trimmed, lower case, NFC: one mailbox is one account' })
const NewPassword = Type.String({ description: 'At least 8 characters and at most 1,024 bytes' })
const SessionId = Type.String({ pattern: '^[0-9a-f]{32}$', description: 'One sign-in of one user' })
const AccessToken = Type.String({
  description:
    'JWT, sent as Bearer. `auth_time` is the time of the sign-in, `email_verified` whether the address was confirmed; ' +
    '`verified_email` is present after a sign-in through the mailbox',
})
const RefreshToken = Type.String({
  description: `Exchanged once at the refresh route for the next pair. If it is sent again within ${limits.refreshRepeatMs / 1_000} seconds of its exchange, it returns the current refresh token of the session; later it ends the session`,
})
const DeviceToken = Type.String({
  description:
    'Proves that this device has signed in as this user. Store it beyond the logout and send it with the next login: ' +
    'failures are then counted for this device, and failures of others do not lock it. It does not sign in, and is valid ' +
    'for 400 days',
})
const KnownDevice = Type.Optional(
  Type.String({
    description:
      'The `device_token` of an earlier answer. Failed logins with it only lock this device, and a lock of the e-mail ' +
      'does not apply to it. It is ignored if it belongs to another user, or was issued before the password was last set',
  }),
)
const ExpiresIn = Type.Integer({ minimum: 1, description: 'Seconds until `token` expires' })
const OneTimeToken = Type.String({ description: 'Valid once' })
const AppMetadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Set with the root key; every token of the user contains it in readable form',
})
const UserMetadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Set by the user; every token of the user contains it in readable form',
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

/** Answer to a registration; without tokens if the e-mail must be verified first. */
export const Registered = Type.Object({
  user_id: Type.Union([UserId, Type.Null()], {
    description: 'Null if the e-mail must be verified first: the answer does not reveal whether it was taken',
  }),
  email: Email,
  token: Type.Union([AccessToken, Type.Null()], {
    description: 'Null if the e-mail must be verified first',
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

/** Answer to a login, and to a refresh, which returns two new tokens. */
export const LoggedIn = Type.Object(signedIn)
export type LoggedIn = Static<typeof LoggedIn>
documented('Tokens', LoggedIn, { tokens: signedInExample })

/** Body of a request for a mail: a magic link, a password reset or the verification of the address. */
export const EmailBody = Type.Object({ email: Email }, { additionalProperties: false })
documented('EmailBody', EmailBody, { email: { email: ada.email } })

/** Answer to a request for a mail; the same whether or not the account exists. */
export const LinkSent = Type.Object({
  sent: Type.Boolean({
    description:
      'Whether this server sends mails. A mailbox receives at most four mails of a kind and one more every ten minutes; ' +
      'further ones are silently dropped',
  }),
  token: Type.Optional(
    Type.String({ description: 'The token, if mail is off and the caller may have it (docs/OPERATIONS.md)' }),
  ),
})
export type LinkSent = Static<typeof LinkSent>
documented('LinkSent', LinkSent, {
  mailed: { sent: true },
  'mail is off': { sent: false, token: oneTimeToken },
})

/** Body with the token of a magic link, or of the mail that verifies an address. */
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
  jti: Type.String({ description: 'The `jti` of the token in the request' }),
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

/** Answer of GET /v1/auth/me: the user as stored now. The token may have older values. */
export const Me = Type.Object(shownUser)
export type Me = Static<typeof Me>
documented('Me', Me, { me: userExample })

/** Body of PATCH /v1/auth/me/user-metadata: the whole new object. */
export const UserMetadataBody = Type.Object({ metadata: JsonObject }, { additionalProperties: false })
export type UserMetadataBody = Static<typeof UserMetadataBody>
documented('MetadataBody', UserMetadataBody, { metadata: { metadata: { role: 'editor' } } })

/** Answer to the replacement of one's user_metadata. */
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
        description: 'Identifies the e-mail in audit records of successful and failed logins',
      }),
      locked_until_ms: Type.Union([UnixMs, Type.Null()], {
        description: 'Until when password logins are refused after failures; null if they are not',
      }),
      passkeys: Type.Integer({ minimum: 0, description: 'Number of passkeys of the user' }),
      mailbox_proven: Type.Boolean({
        description:
          'Whether the user has signed in through the mailbox, or a provider vouched for it: tokens contain verified_email',
      }),
    }),
  ),
  total: Type.Integer({ minimum: 0, description: totalDescription }),
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

/** Answer to the deletion of a user. */
export const UserDeleted = Type.Object({ deleted: Type.Literal(true), ...whose })
export type UserDeleted = Static<typeof UserDeleted>
documented('UserDeleted', UserDeleted, { deleted: { deleted: true, ...ada } })

/** Answer to the reset of the failed logins of a user. */
export const UserUnlocked = Type.Object({
  unlocked: Type.Boolean({ description: 'Whether logins were locked' }),
  ...whose,
})
export type UserUnlocked = Static<typeof UserUnlocked>
documented('UserUnlocked', UserUnlocked, { unlocked: { unlocked: true, ...ada } })

/** Answer to ending the sessions of a user. */
export const UserLoggedOut = Type.Object({
  sessions_ended: Type.Integer({ minimum: 0, description: 'Number of sessions that were ended' }),
  ...whose,
})
export type UserLoggedOut = Static<typeof UserLoggedOut>
documented('UserLoggedOut', UserLoggedOut, { ended: { sessions_ended: 2, ...ada } })

const clear = Type.Boolean({
  description: 'Clears user_metadata, if it leaves too few bytes for app_metadata',
})

/** Body of PATCH /v1/auth/users/:email/app-metadata: the whole new object. */
export const AppMetadataBody = Type.Object(
  { ...UserMetadataBody.properties, clear_user_metadata: Type.Optional(clear) },
  { additionalProperties: false },
)
documented('AppMetadataBody', AppMetadataBody, { metadata: { metadata: { role: 'editor' } } })

/** Answer to the replacement of the app_metadata of a user. */
export const AppMetadataUpdated = Type.Object({ email: Email, app_metadata: AppMetadata })
export type AppMetadataUpdated = Static<typeof AppMetadataUpdated>
documented('AppMetadataUpdated', AppMetadataUpdated, {
  updated: { email: ada.email, app_metadata: metadata.app_metadata },
})

/** Public keys to verify tokens with (RFC 7517, RFC 8037): the current, the next and the last retired one. */
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

/** Answer to a changed password: links that were sent before are revoked. */
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
        description: 'Whether to delete all passkeys of the user, for an account that may be compromised',
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

/** Answer to a password reset. It has no tokens: the user signs in with the new password. */
export const PasswordWasReset = Type.Object({ reset: Type.Literal(true), ...whose })
export type PasswordWasReset = Static<typeof PasswordWasReset>
documented('PasswordWasReset', PasswordWasReset, { reset: { reset: true, ...ada } })

const shownSession = {
  sid: SessionId,
  created_at_ms: UnixMs,
  last_used_at_ms: UnixMs,
  amr: Type.Array(Type.String(), { description: 'How the user signed in (RFC 8176)' }),
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
      current: Type.Boolean({ description: 'Whether the token of the request belongs to this session' }),
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

/** Answer to the rotation of the key that signs tokens. */
export const SigningKeyRotated = Type.Object({
  kid: Type.String({ description: 'The key that signs from now on' }),
  next_kid: Type.String({ description: 'The next key, which is already published' }),
  retired_until_ms: Type.Integer({
    minimum: 0,
    description: 'Until when tokens of the previous key are accepted',
  }),
})
export type SigningKeyRotated = Static<typeof SigningKeyRotated>
