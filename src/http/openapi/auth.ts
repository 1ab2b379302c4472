import type { TSchema } from 'typebox'
import type { ErrorCode } from '../../base/errors.js'
import type { AuthRoute } from '../../routes/auth-route.js'
import * as wire from '../../wire/auth.js'
import * as passkeys from '../../wire/passkeys.js'

/*
 * What the OpenAPI document tells of the auth routes beside what stands on each of them.
 */

/** Schemas with a name. Of those that are the same, one stands for all. */
export const authSchemas: Readonly<Record<string, TSchema>> = {
  AppMetadataUpdated: wire.AppMetadataUpdated,
  AuthStatus: wire.AuthStatus,
  EmailBody: wire.MagicLinkSendBody,
  EmailVerified: wire.EmailVerified,
  Jwks: wire.Jwks,
  KeyRotated: wire.KeyRotated,
  LinkSent: wire.LinkSent,
  LoggedOut: wire.LoggedOut,
  LoginBody: wire.LoginBody,
  MagicLinkVerified: wire.MagicLinkVerified,
  Me: wire.Me,
  MetadataBody: wire.UserMetadataBody,
  OneTimeTokenBody: wire.MagicLinkVerifyBody,
  PasskeyAssertionBody: passkeys.PasskeyAssertionBody,
  PasskeyAuthenticateBody: passkeys.PasskeyAuthenticateBody,
  PasskeyCreation: passkeys.PasskeyCreation,
  PasskeyDeleted: passkeys.PasskeyDeleted,
  PasskeyPage: passkeys.PasskeyPage,
  PasskeyRegisterBody: passkeys.PasskeyRegisterBody,
  PasskeyRegistered: passkeys.PasskeyRegistered,
  PasskeyRequest: passkeys.PasskeyRequest,
  PasswordChangeBody: wire.PasswordChangeBody,
  PasswordChanged: wire.PasswordChanged,
  PasswordResetBody: wire.PasswordResetBody,
  PasswordWasReset: wire.PasswordWasReset,
  RefreshBody: wire.RefreshBody,
  RegisterBody: wire.RegisterBody,
  Registered: wire.Registered,
  Revoked: wire.Revoked,
  SessionEnded: wire.SessionEnded,
  SessionPage: wire.SessionPage,
  Tokens: wire.LoggedIn,
  UserDeleted: wire.UserDeleted,
  UserMetadataUpdated: wire.UserMetadataUpdated,
  UserPage: wire.UserPage,
}

/** What only one operation answers, by its operationId (contract.md 6). */
export const authOwnCodes: Readonly<Record<string, readonly ErrorCode[]>> = {
  postAuthRegister: ['email_exists', 'weak_password'],
  postAuthLogin: ['invalid_credentials', 'account_locked', 'email_not_verified'],
  postAuthMagicLinkVerify: ['invalid_token', 'email_not_verified'],
  postAuthVerifyEmail: ['invalid_token'],
  postAuthPasswordChange: ['invalid_credentials', 'account_locked', 'weak_password'],
  postAuthPasswordReset: ['invalid_token', 'weak_password'],
  postAuthRefresh: ['refresh_invalid', 'refresh_expired', 'refresh_reused'],
  postAuthPasskeyRegisterChallenge: [
    'not_found',
    'too_large',
    'reauthentication_required',
    'passkeys_not_configured',
  ],
  postAuthPasskeyRegister: ['passkey_failed', 'reauthentication_required', 'passkeys_not_configured'],
  postAuthPasskeyAuthenticateChallenge: ['passkeys_not_configured'],
  postAuthPasskeyAuthenticate: ['passkey_failed', 'email_not_verified', 'passkeys_not_configured'],
  deleteAuthPasskey: ['not_found'],
  getAuthMe: ['not_found'],
  patchAuthMeUserMetadata: ['not_found', 'metadata_too_large'],
  getAuthOauthByProviderAuthorize: ['not_found', 'redirect_not_allowed', 'oauth_not_configured'],
  getAuthOauthByProviderCallback: ['not_found', 'oauth_failed', 'oauth_not_configured'],
  deleteAuthSession: ['not_found'],
  deleteAuthUser: ['not_found'],
  patchAuthUserAppMetadata: ['not_found', 'metadata_too_large'],
}

/** Operations whose `invalid_token` is 400: the token stands in the body and is no credential. */
export const tokenInBody: ReadonlySet<string> = new Set(['postAuthVerifyEmail', 'postAuthPasswordReset'])

/** The codes that an auth route answers with by what it is. */
export function authCodes(route: AuthRoute): ErrorCode[] {
  const { caller, docs, endsAccess, method, organism, whileOff, writes } = route
  const found: ErrorCode[] = [...callerCodes[caller]]
  if (endsAccess !== true) found.unshift('license_required')
  if (whileOff === undefined) found.push('auth_disabled', 'overloaded')
  if (organism === 'initialised') found.push('namespace_not_found', 'overloaded')
  if (docs.query !== undefined) found.push('validation_failed')
  if (docs.request !== undefined) found.push('validation_failed', 'too_large', 'unsupported_media_type')
  if (method !== 'get' || writes === true) found.push('outcome_unknown', 'clock_skew', 'storage_full')
  return found
}

const callerCodes: Readonly<Record<AuthRoute['caller'], readonly ErrorCode[]>> = {
  anyone: [],
  user: ['unauthorized', 'invalid_token', 'token_expired', 'token_revoked'],
  admin: ['unauthorized', 'forbidden'],
}

/** The credentials that an auth route takes. */
export function authSecurity(route: AuthRoute): unknown[] {
  if (route.caller === 'anyone') return []
  return route.caller === 'user' ? [{ userToken: [] }] : [{ rootKey: [] }, { scopedKey: [authScope(route)] }]
}

/** What `x-scope` says of an auth route. */
export function authScope({ caller, organism }: AuthRoute): string {
  const admin = organism === undefined ? 'admin:*' : 'admin:organisms'
  return { anyone: 'none', user: 'user', admin }[caller]
}
