import { RefusedError, refuse, type Refusal } from '../base/errors.js'
import type { Exchange } from './exchange.js'
import type { Handling } from './handling.js'

/** A bug in a route breaks its request and no other. */
export function guarded(exchange: Exchange, handling: Handling, run: () => void | Promise<void>): void {
  try {
    run()?.catch((error: unknown) => exchange.refuse(failure(error, exchange, handling)))
  } catch (error) {
    exchange.refuse(failure(error, exchange, handling))
  }
}

/** What a throw is answered with; a thread that could not be had is no bug, and its pool tells of it. */
function failure(error: unknown, exchange: Exchange, handling: Handling): Refusal {
  if (error instanceof RefusedError) return error.refusal
  handling.onError(error, exchange.requestId)
  return internalError
}

const internalError = refuse('internal_error', 'The server failed; its log tells why under the request id')
