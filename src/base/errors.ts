/**
 * The one catalogue of expected failures. A code is stable once released: clients switch on it. docs/errors.md is made
 * from this table.
 */
export const errorCatalogue = {
  validation_failed: { status: 400, title: 'The request is not valid' },
  malformed_request: { status: 400, title: 'The HTTP request is malformed' },
  redirect_not_allowed: { status: 400, title: 'Users are not sent to this address' },
  reserved_type: { status: 400, title: 'The record type is reserved for the server' },
  unauthorized: { status: 401, title: 'A credential is required' },
  invalid_credentials: { status: 401, title: 'The e-mail or the password is wrong' },
  invalid_token: { status: 401, title: 'The token is not valid' },
  token_expired: { status: 401, title: 'The token has expired' },
  token_revoked: { status: 401, title: 'The token was revoked' },
  reauthentication_required: { status: 401, title: 'The sign-in is too long ago for this' },
  refresh_invalid: { status: 401, title: 'The refresh token is not valid' },
  refresh_expired: { status: 401, title: 'The refresh token has expired' },
  oauth_failed: { status: 401, title: 'The sign-in by a provider cannot be finished' },
  refresh_reused: { status: 401, title: 'The refresh token was used before, so the session has ended' },
  passkey_failed: { status: 401, title: 'The passkey was not verified' },
  license_required: { status: 402, title: 'The auth add-on needs a valid license key' },
  forbidden: { status: 403, title: 'The credential does not allow this' },
  grant_too_large: { status: 403, title: 'The policies take too many bytes with the claims of the token' },
  foreign_request: { status: 403, title: 'An open mode serves this machine alone' },
  email_not_verified: { status: 403, title: 'The e-mail is not verified yet' },
  zone_immutable: { status: 403, title: 'The zone of this agent allows no mutation' },
  not_found: { status: 404, title: 'No such resource' },
  agent_not_found: { status: 404, title: 'No such agent' },
  record_not_found: { status: 404, title: 'No such record' },
  edge_not_found: { status: 404, title: 'No such edge' },
  organism_not_found: { status: 404, title: 'No such organism' },
  proposal_not_found: { status: 404, title: 'No such proposal' },
  head_not_logged: { status: 404, title: 'The server log does not tell of this strand' },
  namespace_not_found: { status: 404, title: 'The organism has no auth namespace' },
  auth_disabled: { status: 404, title: 'The auth add-on is off' },
  method_not_allowed: { status: 405, title: 'The resource does not have this method' },
  agent_exists: { status: 409, title: 'The agent exists already' },
  organism_exists: { status: 409, title: 'The organism exists already' },
  namespace_exists: { status: 409, title: 'The organism has an auth namespace already' },
  key_in_use: { status: 409, title: 'The public key belongs to another agent' },
  email_exists: { status: 409, title: 'The e-mail belongs to another account' },
  already_deleted: { status: 409, title: 'The record is deleted already' },
  not_deleted: { status: 409, title: 'The record is not deleted' },
  already_erased: { status: 409, title: 'The record is erased already' },
  import_conflict: { status: 409, title: 'The export does not continue the strand that is here' },
  import_open: { status: 409, title: 'The agent is being imported and takes no writes yet' },
  seed_unknown: { status: 409, title: 'The seed of the proposed key is not on this server' },
  proposal_open: { status: 409, title: 'A proposal about the same is open' },
  proposal_closed: { status: 409, title: 'The proposal is not open any more' },
  already_voted: { status: 409, title: 'The principal has voted so already' },
  head_mismatch: { status: 412, title: 'The chain head has moved' },
  too_large: { status: 413, title: 'The content is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for another request' },
  ingest_rejected: { status: 422, title: 'Lines were refused' },
  too_many_bad_lines: { status: 422, title: 'Too many lines were refused, so the upload was ended' },
  import_rejected: { status: 422, title: 'The export does not verify or cannot be taken in' },
  metadata_too_large: { status: 422, title: 'The metadata takes too many bytes' },
  weak_password: { status: 422, title: 'The password is too easy to guess' },
  headers_too_large: { status: 431, title: 'The headers of the request are too many or too long' },
  rate_limited: { status: 429, title: 'Too many requests' },
  too_many_streams: { status: 429, title: 'The credential has too many streams or tickets' },
  account_locked: { status: 429, title: 'Too many failed logins' },
  internal_error: { status: 500, title: 'The server failed' },
  not_implemented: { status: 501, title: 'Not available on this server' },
  oauth_not_configured: { status: 501, title: 'Sign-in by this provider is not set up on this server' },
  passkeys_not_configured: { status: 501, title: 'Passkeys are not set up on this server' },
  overloaded: { status: 503, title: 'The server is busy' },
  unavailable: { status: 503, title: 'The server is starting, stopping or recovering' },
  outcome_unknown: { status: 503, title: 'The outcome of the request is not known' },
  clock_skew: { status: 503, title: 'The server clock is behind its records' },
  http_version_not_supported: { status: 505, title: 'The request is not of HTTP/1.1' },
  storage_full: { status: 507, title: 'The server is out of storage' },
} as const

/** A code of the catalogue. */
export type ErrorCode = keyof typeof errorCatalogue

/** Whether a text is a code of the catalogue; one that an earlier version stored may not be. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCatalogue, text)
}

/** One fault of a request: a JSON pointer into the body (RFC 6901), a code and what was expected. */
export interface Fault {
  pointer: string
  code: ErrorCode
  detail: string
}

/**
 * An expected failure: a value, not a throw. It has this one shape from where it is decided to where it is sent, also
 * between threads; the result of anything that can fail is a union with it. `extra` members stand beside the standard
 * ones of the answer.
 */
export interface Refusal {
  /** Other members of such unions have a `kind`, or no `code`, so that either distinguishes a refusal. */
  kind?: undefined
  code: ErrorCode
  /** Replaces the catalogue's status where a code has two: `invalid_token` is 400 for a token in a body. */
  status?: 400
  detail: string
  faults?: Fault[]
  retryAfterSecs?: number
  /** The content codings that would be taken, where another one is the reason. */
  acceptEncoding?: string
  extra?: Record<string, unknown>
}

/**
 * Makes a refusal. `detail` starts with a capital, has no full stop and says what was expected; with a status of 429 or
 * 5xx it says what is the matter.
 */
export function refuse(code: ErrorCode, detail: string, more?: Omit<Refusal, 'code' | 'detail'>): Refusal {
  return { code, detail, ...more }
}

/**
 * 415 for a body in a content coding that is not taken; the answer names the ones that are, which tells it from a wrong media
 * type (RFC 9110, 12.5.3).
 */
export function refuseCoding(acceptEncoding: 'identity' | 'gzip, identity', detail: string): Refusal {
  return refuse('unsupported_media_type', detail, { acceptEncoding })
}

/** The HTTP status that a refusal is answered with: the catalogue's, unless it names its own. */
export function statusOf(refusal: Refusal): number {
  return refusal.status ?? errorCatalogue[refusal.code].status
}

/**
 * An expected failure that is thrown where no value can be returned, as out of a long read: the request is answered
 * with it.
 */
export class RefusedError extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, cause?: unknown) {
    super(refusal.detail, { cause })
    this.refusal = refusal
  }
}

/** The refusal that was thrown. @throws whatever else was thrown */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof RefusedError) return error.refusal
  throw error
}
