import { AuthorizationResponseError, ResponseBodyError } from 'openid-client'
import type { OauthFault } from '../auth/oauth.js'

/** Creates a fault. @param reason for the log */
export function oauthFault(error: OauthFault['error'], reason: string): OauthFault {
  return { error, reason }
}

/** The fault of a failed call: an error from the provider, an unavailable provider, or an invalid answer. */
export function faultOf(error: unknown): OauthFault {
  const reason = reasonOf(error)
  if (error instanceof AuthorizationResponseError) return oauthFault(answeredError(error.error), reason)
  if (error instanceof ResponseBodyError && error.status < 500) return oauthFault('server_error', reason)
  return oauthFault(isUnavailable(error) ? 'temporarily_unavailable' : 'server_error', reason)
}

/**
 * The error code for the user; codes that only concern this server become `server_error` (RFC 6749, 4.1.2.1).
 */
function answeredError(error: string): OauthFault['error'] {
  return error === 'access_denied' || error === 'temporarily_unavailable' ? error : 'server_error'
}

/** Whether the provider did not answer, or answered with 5xx. */
function isUnavailable(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof ResponseBodyError) return true
    if (one.name === 'TimeoutError' || one.name === 'AbortError') return true
    if (one instanceof TypeError && one.message === 'fetch failed') return true
    if (one.cause instanceof Response) return one.cause.status >= 500
  }
  return false
}

/** Names and messages of an error and its causes, which contain no data of the request or the answer. */
function reasonOf(error: unknown): string {
  const parts: string[] = []
  for (let one = error; one instanceof Error; one = one.cause) {
    // The message of a parser quotes the text, which can contain an e-mail.
    parts.push(one instanceof SyntaxError ? one.name : `${one.name}: ${one.message}`)
  }
  return parts.join(' < ') || 'unknown'
}
