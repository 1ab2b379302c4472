import type { TokenAnswer } from './auth-session.js'
import { ServiceError } from './errors.js'
import type { QueryValue } from './http.js'

/** A provider that users can sign in with. */
export type OauthProvider = 'google' | 'github'

/** Where the user returns to. */
export interface OauthOptions {
  /** An address that the service allows (its SERVICE_OAUTH_ALLOWED_REDIRECT_URIS), or one below it. */
  redirectUri: string
  /**
   * Whether the tokens come after `?` (the default), for the application's server, or after `#`, which no server sees,
   * for a page.
   */
  mode?: 'query' | 'fragment' | undefined
}

/** What a user returns with after signing in. */
export interface OauthSignedIn extends TokenAnswer {
  email: string
}

/** What sign-in by other services uses of the client. */
export interface OauthCalls {
  /** The whole address of an auth route. */
  address(path: string, query: Record<string, QueryValue>): string
  signIn(answer: TokenAnswer): void
}

/** Parameters that the service adds to the address that a user returns to. */
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
 * Sign-in by Google or GitHub (docs/OPERATIONS.md, Signing people in). The browser goes to `authorizeUrl` and comes
 * back with the tokens in its address, where one of the two other methods reads them.
 */
export class OauthClient {
  readonly #calls: OauthCalls

  constructor(calls: OauthCalls) {
    this.#calls = calls
  }

  /** The address to which the browser is sent, for example with `location.assign`; do not fetch it. */
  authorizeUrl(provider: OauthProvider, { redirectUri, mode }: OauthOptions): string {
    const query = { redirect_uri: redirectUri, redirect_mode: mode }
    return this.#calls.address(`/oauth/${provider}/authorize`, query)
  }

  /**
   * For pages that asked for `fragment`, when they load: signs in with the tokens in the page's address, which are
   * removed from the address bar and the history at once.
   * @returns undefined when the address has none
   * @throws ServiceError with the code `access_denied`, `server_error` or `temporarily_unavailable` when the sign-in
   * failed
   */
  takeFromFragment(): OauthSignedIn | undefined {
    const url = new URL(globalThis.location.href)
    const results = new URLSearchParams(url.hash.slice(1))
    if (!isReturn(results)) return undefined
    url.hash = ''
    cleanAddress(url)
    return this.#take(results)
  }

  /**
   * The same for the query: of an address that a server received, or of the page, whose address bar is then cleaned. A
   * server makes a client for each user.
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
    return this.#take(results)
  }

  #take(results: URLSearchParams): OauthSignedIn {
    const error = results.get('error')
    if (error !== null) {
      const message = results.get('error_description') ?? 'The sign-in by another service came to nothing'
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

/** Whether the service sent the user back to this address. */
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
