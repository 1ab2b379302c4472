/**
 * All expected failures. A released code never changes, because clients switch on it. Source of
 * docs/errors.md.
 */
export const errorCatalogue = {
  validation_failed: { status: 400, title: 'The request is not valid' },
  malformed_request: { status: 400, title: 'The HTTP request is malformed' },
  redirect_not_allowed: { status: 400, title: 'The redirect address is not allowed' },
  reserved_type: { status: 400, title: 'The record type is reserved for the server' },
  unauthorized: { status: 401, title: 'A credential is required' },
  invalid_credentials: { status: 401, title: 'The e-mail or the password is wrong' },
  invalid_token: { status: 401, title: 'The token is not valid' },
  token_expired: { status: 401, title: 'The token has expired' },
  token_revoked: { status: 401, title: 'The token was revoked' },
  reauthentication_required: { status: 401, title: 'This action needs a more recent sign-in' },
  refresh_invalid: { status: 401, title: 'The refresh token is not valid' },
  refresh_expired: { status: 401, title: 'The refresh token has expired' },
  oauth_failed: { status: 401, title: 'The sign-in with a provider failed' },
  refresh_reused: { status: 401, title: 'The refresh token was used before, so the session has ended' },
  passkey_exists: { status: 409, title: 'The passkey is already registered' },
  passkey_failed: { status: 401, title: 'The passkey was not verified' },
  license_required: { status: 402, title: 'The auth add-on needs a valid license key' },
  forbidden: { status: 403, title: 'The credential does not allow this' },
  grant_too_large: { status: 403, title: 'The policies and the claims of the token are too large' },
  policy_pending: { status: 403, title: 'The policies that allow this are not in force yet' },
  email_not_verified: { status: 403, title: 'The e-mail is not verified yet' },
  zone_immutable: { status: 403, title: 'The zone of this agent allows no mutation' },
  not_found: { status: 404, title: 'No such resource' },
  agent_not_found: { status: 404, title: 'No such agent' },
  record_not_found: { status: 404, title: 'No such record' },
  edge_not_found: { status: 404, title: 'No such edge' },
  organism_not_found: { status: 404, title: 'No such organism' },
  proposal_not_found: { status: 404, title: 'No such proposal' },
  head_not_logged: { status: 404, title: 'The server log has no head of this strand' },
  namespace_not_found: { status: 404, title: 'The organism has no auth namespace' },
  auth_disabled: { status: 404, title: 'The auth add-on is off' },
  method_not_allowed: { status: 405, title: 'The resource does not have this method' },
  agent_exists: { status: 409, title: 'The agent already exists' },
  organism_exists: { status: 409, title: 'The organism already exists' },
  namespace_exists: { status: 409, title: 'The organism already has an auth namespace' },
  key_in_use: { status: 409, title: 'The public key belongs to another agent' },
  email_exists: { status: 409, title: 'The e-mail belongs to another account' },
  already_deleted: { status: 409, title: 'The record is already deleted' },
  not_deleted: { status: 409, title: 'The record is not deleted' },
  already_erased: { status: 409, title: 'The record is already erased' },
  import_conflict: { status: 409, title: 'The export does not continue the stored strand' },
  import_open: { status: 409, title: 'The agent is being imported and does not accept writes yet' },
  proposal_open: { status: 409, title: 'A proposal for the same change is already open' },
  proposal_closed: { status: 409, title: 'The proposal is no longer open' },
  already_voted: { status: 409, title: 'The principal has already cast this vote' },
  head_mismatch: { status: 412, title: 'The chain head has moved' },
  too_large: { status: 413, title: 'The content is too large' },
  unsupported_media_type: { status: 415, title: 'The media type is not supported' },
  idempotency_key_reused: { status: 422, title: 'The idempotency key was used for a different request' },
  ingest_rejected: { status: 422, title: 'Lines were refused' },
  too_many_bad_lines: { status: 422, title: 'Too many lines were refused, so the upload was aborted' },
  import_rejected: { status: 422, title: 'The export fails verification or cannot be imported' },
  metadata_too_large: { status: 422, title: 'The metadata is too large' },
  weak_password: { status: 422, title: 'The password is too easy to guess' },
  headers_too_large: { status: 431, title: 'The headers of the request are too many or too long' },
  rate_limited: { status: 429, title: 'Too many requests' },
  too_many_streams: { status: 429, title: 'The credential has too many open streams or tickets' },
  account_locked: { status: 429, title: 'Too many failed sign-ins' },
  internal_error: { status: 500, title: 'The server failed' },
  not_implemented: { status: 501, title: 'Not available on this server' },
  oauth_not_configured: { status: 501, title: 'Sign-in with this provider is not set up on this server' },
  passkeys_not_configured: { status: 501, title: 'Passkeys are not set up on this server' },
  overloaded: { status: 503, title: 'The server is busy' },
  unavailable: { status: 503, title: 'The server is starting, stopping or recovering' },
  outcome_unknown: { status: 503, title: 'The outcome of the request is unknown' },
  clock_skew: { status: 503, title: 'The server clock is behind its records' },
  http_version_not_supported: { status: 505, title: 'The HTTP version is not supported' },
  storage_full: { status: 507, title: 'The server is out of storage' },
} as const

export type ErrorCode = keyof typeof errorCatalogue

/**
 * Whether a text is a code of the catalogue. A code that an earlier version stored may be missing from it.
 */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCatalogue, text)
}

/** One fault of a request: a JSON pointer into the body (RFC 6901), a code and a description. */
export interface Fault {
  pointer: string
  code: ErrorCode
  detail: string
}

/**
 * An expected failure, returned as a value. It keeps this shape from the decision to the response, also
 * between threads. `extra` members are added to the standard members of the problem document.
 */
export interface Refusal {
  /** Never set: other members of a union with `Refusal` have a `kind`, or no `code`. */
  kind?: undefined
  code: ErrorCode
  /**
   * Replaces the status of the catalogue: `invalid_token` is 400 for a token in a body, `storage_full` is 503
   * for senders of OTLP.
   */
  status?: 400 | 503
  detail: string
  faults?: Fault[]
  retryAfterSecs?: number
  /** The supported content codings, when the coding of the request is the reason. */
  acceptEncoding?: string
  extra?: Record<string, unknown>
}

/**
 * Creates a refusal. `detail` starts with a capital and has no full stop; it says what is wrong and what to
 * do.
 */
export function refuse(code: ErrorCode, detail: string, more?: Omit<Refusal, 'code' | 'detail'>): Refusal {
  return { code, detail, ...more }
}

/**
 * 415 for an unsupported content coding. `Accept-Encoding` distinguishes it from a wrong media type (RFC
 * 9110, 12.5.3).
 */
export function refuseCoding(acceptEncoding: 'identity' | 'gzip, identity', detail: string): Refusal {
  return refuse('unsupported_media_type', detail, { acceptEncoding })
}

export function statusOf(refusal: Refusal): number {
  return refusal.status ?? errorCatalogue[refusal.code].status
}

/** An expected failure that is thrown because no value can be returned, such as from within a long read. */
export class RefusedError extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, cause?: unknown) {
    super(refusal.detail, { cause })
    this.refusal = refusal
  }
}

/** The refusal of a `RefusedError`. @throws any other error */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof RefusedError) return error.refusal
  throw error
}
