/** Details of a failure besides its status (RFC 9457). */
export interface FailureDetails {
  /** Stable code from the server's catalogue, such as `agent_exists`. */
  code: string
  /** Id of the request in the server's log, if known. */
  requestId?: string | undefined
  /** Milliseconds to wait before another attempt (Retry-After). */
  retryAfterMs?: number | undefined
  /** All members of the problem document, such as `errors` of a refused body or the head of a 412. */
  problem?: Readonly<Record<string, unknown>> | undefined
  /** The underlying error, after a network failure. */
  cause?: unknown
}

/**
 * A failed call. The base class of the other errors, so check for those first. `status` is the HTTP status,
 * or 0 without a response.
 */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError'
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  readonly retryAfterMs: number | undefined
  readonly problem: Readonly<Record<string, unknown>>

  constructor(status: number, message: string, details: FailureDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.status = status
    this.code = details.code
    this.requestId = details.requestId
    this.retryAfterMs = details.retryAfterMs
    this.problem = details.problem ?? {}
  }
}

/** The agent or record does not exist, or a row policy hides it: status 404. */
export class NotFoundError extends ServiceError {
  override readonly name = 'NotFoundError'
}

/** The service could not be reached (`network_error`) or did not respond in time (`timeout`): status 0. */
export class NetworkError extends ServiceError {
  override readonly name = 'NetworkError'

  constructor(message: string, details: Partial<FailureDetails> = {}) {
    super(0, message, { code: 'network_error', ...details })
  }
}

/** The error of a response: NotFoundError for 404, otherwise ServiceError. */
export function responseError(status: number, message: string, details: FailureDetails): ServiceError {
  return status === 404
    ? new NotFoundError(status, message, details)
    : new ServiceError(status, message, details)
}
