import { NetworkError, ServiceError } from '../../client/index.js'

/** What an error means to who uses the page. */
export function explain(error: unknown): string {
  if (error instanceof NetworkError) return 'The server did not answer. Try again once it is back'
  if (error instanceof ServiceError) {
    const request = error.requestId === undefined ? '' : ` (request ${error.requestId})`
    return `${error.message}${request}`
  }
  return error instanceof Error ? error.message : String(error)
}
