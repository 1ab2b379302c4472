/** The ways to sign in, as audit records name them. A refresh token signs in again. */
export const signInMethods = ['password', 'passkey', 'magic_link', 'oauth', 'refresh'] as const
export type SignInMethod = (typeof signInMethods)[number]

/** Why a sign-in failed, for audit records and the log; callers get one answer (docs/OPERATIONS.md, Signing people in). */
export type SignInReason =
  // Of any method: the account has to verify its e-mail first.
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

/** A sign-in that failed. */
export interface SignInFailure {
  method: SignInMethod
  reason: SignInReason
}
