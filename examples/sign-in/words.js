/** Messages for users by the stable codes of errors; docs/errors.md lists all codes. */
const words = {
  invalid_credentials: () => 'The e-mail or the password is wrong.',
  account_locked: ({ retryAfterMs }) =>
    `Too many failed sign-ins. Try again ${inMinutes(retryAfterMs)}, or use a magic link or a passkey.`,
  email_not_verified: () => 'Confirm your e-mail address first, by the link in the mail.',
  email_exists: () => 'There is an account with this e-mail already. Sign in instead.',
  weak_password: ({ problem }) =>
    `This password is too easy to guess: ${(problem.reasons ?? []).join('; ')}.`,
  validation_failed: ({ message }) => `The service refused this: ${message}.`,
  invalid_token: () => 'The link is wrong, has been used, or has expired. Request a new one.',
  metadata_too_large: () => 'The metadata is too large.',
  passkey_failed: () => 'The service does not know this passkey, or could not verify it.',
  passkeys_not_configured: () => 'This service has no passkeys.',
  passkeys_not_supported: () => 'This browser has no passkeys here. The page must be https or localhost.',
  NotAllowedError: () => 'No passkey was used: it was declined, took too long, or this device has none.',
  InvalidStateError: () => 'This device already has a passkey for your account.',
  SecurityError: () => 'Passkeys of this service cannot be used on this page.',
  SyntaxError: () => 'Expected a JSON object, for example {"name": "Ada"}.',
  access_denied: () => 'You did not let the other service sign you in.',
  server_error: () => 'The other service could not sign you in.',
  temporarily_unavailable: () => 'The other service is busy. Try again later.',
  refresh_invalid: () => ended,
  refresh_expired: () => ended,
  refresh_reused: () => ended,
  token_revoked: () => ended,
  unauthorized: () => ended,
  license_required: () => 'This service has no license for sign-in.',
  auth_disabled: () => 'This service has no sign-in.',
  organism_not_found: () => 'This service has no such organism.',
  namespace_not_found: () => 'Sign-in is not set up for this organism.',
  rate_limited: ({ retryAfterMs }) => `Too many attempts. Try again ${inMinutes(retryAfterMs)}.`,
  overloaded: () => 'The service is busy. Try again in a moment.',
  network_error: () => 'The service cannot be reached, or does not allow pages of this origin.',
  timeout: () => 'The service did not respond in time.',
}

const ended = 'Your session has ended. Sign in again.'

/** A message about an error for the user. Errors of the client have a code, errors of the browser a name. */
export function inWords(error) {
  const known = words[error.code] ?? words[error.name]
  return known === undefined ? `That did not work: ${error.message}.` : known(error)
}

function inMinutes(milliseconds = 0) {
  const minutes = Math.ceil(milliseconds / 60_000)
  if (minutes < 1) return 'in a moment'
  return minutes === 1 ? 'in a minute' : `in ${minutes} minutes`
}
