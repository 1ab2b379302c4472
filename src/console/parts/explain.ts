import { NetworkError, ServiceError } from '../../client/errors.js'

/** The message that the page shows for an error. */
export function explain(error: unknown): string {
  if (error instanceof NetworkError) return 'The server did not respond. Try again when it is available'
  if (error instanceof ServiceError) {
    const request = error.requestId === undefined ? '' : ` (request ${error.requestId})`
    return `${error.message}${request}`
  }
  return error instanceof Error ? error.message : String(error)
}
