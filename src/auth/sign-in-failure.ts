/**
 * The ways to sign in, by their names in audit records, and the requests that change how a user can. A refresh
 * counts as one.
 */
export const signInMethods = [
  'password',
  'passkey',
  'magic_link',
  'oauth',
  'refresh',
  'passkey_registration',
  'password_reset',
  'verify_email',
] as const
export type SignInMethod = (typeof signInMethods)[number]

/** Why a sign-in failed, for audit records and the log. Callers do not see it (docs/SIGN-IN.md). */
export type SignInReason =
  // Any method: the e-mail of the account must be verified first.
  | 'not_verified'
  | 'wrong_password'
  | 'no_password'
  | 'unknown_account'
  | 'unknown_link'
  | 'expired_link'
  | 'unknown_challenge'
  | 'expired_challenge'
  | 'malformed'
  | 'wrong_challenge'
  | 'wrong_origin'
  | 'wrong_rp'
  | 'user_not_verified'
  | 'unknown_passkey'
  | 'other_user'
  | 'already_registered'
  | 'bad_signature'
  | 'old_counter'
  | 'unknown_state'
  | 'expired_state'
  | 'other_browser'
  | 'access_denied'
  | 'provider_away'
  | 'provider_error'
  | 'email_not_verified'
  | 'email_taken'
  | 'unknown_token'
  | 'expired_token'
  | 'reused_token'
  | 'session_ended'

export interface SignInFailure {
  method: SignInMethod
  reason: SignInReason
}
