import { AuthorizationResponseError, ResponseBodyError } from 'openid-client'
import type { OauthFault } from '../auth/oauth.js'

/** Makes a fault. @param reason for the log */
export function oauthFault(error: OauthFault['error'], reason: string): OauthFault {
  return { error, reason }
}

/**
 * The fault of a failed call to a provider: what it said about the user, that it is away, or that its answer made no
 * sense.
 */
export function faultOf(error: unknown): OauthFault {
  const reason = reasonOf(error)
  if (error instanceof AuthorizationResponseError) return oauthFault(answeredError(error.error), reason)
  if (error instanceof ResponseBodyError && error.status < 500) return oauthFault('server_error', reason)
  return oauthFault(isAway(error) ? 'temporarily_unavailable' : 'server_error', reason)
}

/** What a provider answered instead of a code, as far as it concerns the user (RFC 6749, 4.1.2.1). */
function answeredError(error: string): OauthFault['error'] {
  return error === 'access_denied' || error === 'temporarily_unavailable' ? error : 'server_error'
}

/** No answer came, or one that says that the provider is out of order. */
function isAway(error: unknown): boolean {
  for (let one = error; one instanceof Error; one = one.cause) {
    if (one instanceof ResponseBodyError) return true
    if (one.name === 'TimeoutError' || one.name === 'AbortError') return true
    if (one instanceof TypeError && one.message === 'fetch failed') return true
    if (one.cause instanceof Response) return one.cause.status >= 500
  }
  return false
}

/** Names and messages down to the first cause; none of them contains what was sent or answered. */
function reasonOf(error: unknown): string {
  const parts: string[] = []
  for (let one = error; one instanceof Error; one = one.cause) {
    // A parser quotes the text that it could not read, which can be somebody's e-mail.
    parts.push(one instanceof SyntaxError ? one.name : `${one.name}: ${one.message}`)
  }
  return parts.join(' < ') || 'Expected an error'
}
