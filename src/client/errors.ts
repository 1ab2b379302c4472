/** What the service said about a failure beside its status (RFC 9457). */
export interface FailureDetails {
  /** Stable code of the server's catalogue, such as `agent_exists`. */
  code: string
  /** Identifier of the request in the server's log, where one is known. */
  requestId?: string | undefined
  /** Milliseconds after which the server asks to be called again (Retry-After). */
  retryAfterMs?: number | undefined
  /** Every member of the answer, such as `errors` of a refused body or the head of a 412. */
  problem?: Readonly<Record<string, unknown>> | undefined
  /** The underlying error, if the network failed. */
  cause?: unknown
}

/**
 * An answer that is not a success; base of the other errors, so check those first. `status` is the HTTP status, 0 where
 * no answer came.
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

/** The service could not be reached (`network_error`) or did not answer in time (`timeout`): status 0. */
export class NetworkError extends ServiceError {
  override readonly name = 'NetworkError'

  constructor(message: string, details: Partial<FailureDetails> = {}) {
    super(0, message, { code: 'network_error', ...details })
  }
}

/** Makes the error of an answer: NotFoundError for 404, ServiceError for the rest. */
export function answerError(status: number, message: string, details: FailureDetails): ServiceError {
  return status === 404
    ? new NotFoundError(status, message, details)
    : new ServiceError(status, message, details)
}
