import type { TokenAnswer } from './auth-session.js'
import { ServiceError } from './errors.js'
import type { QueryValue } from './http.js'

/** A provider that users can sign in with. */
export type OauthProvider = 'google' | 'github'

/** Where and how the user returns. */
export interface OauthOptions {
  /** An address in the service's SERVICE_OAUTH_ALLOWED_REDIRECT_URIS, or an address below one of them. */
  redirectUri: string
  /**
   * `query` (the default) returns the tokens after `?`, for the application's server; `fragment` returns them
   * after `#`, for a page: no server sees them.
   */
  mode?: 'query' | 'fragment' | undefined
}

/** The tokens and e-mail with which a user returns. */
export interface OauthSignedIn extends TokenAnswer {
  email: string
}

/** The functions of the client that OAuth sign-in uses. */
export interface OauthCalls {
  /** The URL of an auth route. */
  address(path: string, query: Record<string, QueryValue>): string
  signIn(answer: TokenAnswer): void
}

/** Parameters that the service adds to the return address. */
const addedNames = [
  'token',
  'refresh_token',
  'token_type',
  'expires_in',
  'email',
  'error',
  'error_description',
]

const errors: ReadonlySet<string> = new Set(['access_denied', 'server_error', 'temporarily_unavailable'])

/**
 * Sign-in with Google or GitHub (docs/SIGN-IN.md). The browser goes to `authorizeUrl` and returns with the
 * tokens in its address; `takeFromFragment` or `takeFromQuery` reads them.
 */
export class OauthClient {
  readonly #calls: OauthCalls

  constructor(calls: OauthCalls) {
    this.#calls = calls
  }

  /** The address to navigate the browser to, for example with `location.assign`; do not fetch it. */
  authorizeUrl(provider: OauthProvider, { redirectUri, mode }: OauthOptions): string {
    const query = { redirect_uri: redirectUri, redirect_mode: mode }
    return this.#calls.address(`/oauth/${provider}/authorize`, query)
  }

  /**
   * For pages that use `fragment`: signs in with the tokens in the page's address, and removes them from the
   * address bar and the history. Call it when the page loads.
   * @returns undefined if the address contains no result of a sign-in
   * @throws ServiceError `access_denied`, `server_error` or `temporarily_unavailable` if the sign-in failed
   */
  takeFromFragment(): OauthSignedIn | undefined {
    const url = new URL(globalThis.location.href)
    const results = new URLSearchParams(url.hash.slice(1))
    if (!isReturn(results)) return undefined
    url.hash = ''
    cleanAddress(url)
    return this.#signIn(results)
  }

  /**
   * Like `takeFromFragment`, for the query of an address that a server received, or of the page, whose
   * address bar is then cleaned. A server needs one client for each user.
   */
  takeFromQuery(address?: string | URL): OauthSignedIn | undefined {
    const url = new URL(address ?? globalThis.location.href, 'http://localhost')
    const results = url.searchParams
    if (!isReturn(results)) return undefined
    if (address === undefined) {
      const others = url.search.slice(1).split('&').filter(isOther)
      const cleaned = new URL(url)
      cleaned.search = others.join('&')
      cleanAddress(cleaned)
    }
    return this.#signIn(results)
  }

  #signIn(results: URLSearchParams): OauthSignedIn {
    const error = results.get('error')
    if (error !== null) {
      const message = results.get('error_description') ?? 'The sign-in with the other service failed'
      throw new ServiceError(401, message, { code: error })
    }
    const text = (name: string) => results.get(name) ?? ''
    const answer: TokenAnswer = {
      token: text('token'),
      refresh_token: text('refresh_token'),
      expires_in: Number(text('expires_in')),
    }
    this.#calls.signIn(answer)
    return { ...answer, email: text('email') }
  }
}

/** Whether the parameters are a result of a sign-in. */
function isReturn(results: URLSearchParams): boolean {
  if (errors.has(results.get('error') ?? '')) return true
  const isSignedIn = ['token', 'refresh_token'].every((name) => (results.get(name) ?? '') !== '')
  return isSignedIn && Number(results.get('expires_in')) > 0
}

function isOther(pair: string): boolean {
  const [name = ''] = new URLSearchParams(pair).keys()
  return !addedNames.includes(name)
}

/** Removes secrets from the address bar and the history. */
function cleanAddress(url: URL): void {
  globalThis.history.replaceState(globalThis.history.state, '', url.href)
}
