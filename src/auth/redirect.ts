/**
 * Redirect addresses for users with their tokens (docs/adr/0011-oauth-sign-in.md). An attacker can create a
 * link to the sign-in with any redirect address; only this check prevents the tokens of its victims from
 * being sent there.
 */

/** An address of the list, which allows its path and everything below. */
export interface AllowedRedirect {
  origin: string
  /** Ends with a slash only if the path itself is not allowed. */
  path: string
}

/** Characters of a redirect address. */
const CHARS_MAX = 2_048

/** Scheme, authority, path, query and fragment of a web address. */
const shape = /^https?:\/\/([^/?#@\\]+)(\/[^?#\\]*)?(\?[^#\\]*)?(#.*)?$/i

/**
 * Percent-encoded characters of a path that servers may decode to a different path: controls, `%`, `/` and
 * `\`.
 */
const encodedTrick = /%(?:[01][0-9a-f]|7f|25|2f|5c)/i

/** Parameters that this server adds; an address that already has one of them could forge a result. */
const addedNames: ReadonlySet<string> = new Set([
  'token',
  'refresh_token',
  'token_type',
  'expires_in',
  'email',
  'error',
  'error_description',
])

/** Parses an address of SERVICE_OAUTH_ALLOWED_REDIRECT_URIS; undefined if it is invalid. */
export function parseAllowedRedirect(text: string): AllowedRedirect | undefined {
  const url = parseRedirect(text)
  if (url === undefined || text.includes('?')) return undefined
  const path = url.pathname === '/' ? '' : url.pathname
  return { origin: url.origin, path }
}

/**
 * Parses a redirect address. Addresses that browsers, proxies and servers may read differently are refused:
 * user names, backslashes, dot segments (also encoded, or as `..;`), empty segments, controls, fragments.
 * @returns undefined if tokens must never be sent to the address, regardless of the list
 */
export function parseRedirect(text: string): URL | undefined {
  if (text.length > CHARS_MAX || /[^\x21-\x7e]/.test(text)) return undefined
  const parts = shape.exec(text)
  if (parts === null || parts[4] !== undefined || !URL.canParse(text)) return undefined
  const path = parts[2] ?? '/'
  if (encodedTrick.test(path) || !isDecodable(path) || path.split('/').some(isTrick)) return undefined
  if (path.includes('//')) return undefined
  const url = new URL(text)
  // If parsing changes the address, another parser may read it differently.
  if (url.pathname !== path || url.username !== '' || url.password !== '') return undefined
  return [...url.searchParams.keys()].some((name) => addedNames.has(name)) ? undefined : url
}

/** Whether the percent-encoding is valid UTF-8; servers read other bytes differently. */
function isDecodable(path: string): boolean {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** Whether some servers read a segment as `.` or `..`, because they remove parameters after `;` first. */
function isTrick(segment: string): boolean {
  const [name = ''] = segment.replaceAll(/%2e/gi, '.').replaceAll(/%3b/gi, ';').split(';')
  return name === '.' || name === '..'
}

/**
 * Whether an address is in the list, or below an address of the list: same origin, and a prefix of whole
 * segments.
 */
export function isAllowedRedirect(url: URL, allowed: readonly AllowedRedirect[]): boolean {
  return allowed.some(({ origin, path }) => {
    if (url.origin !== origin) return false
    return url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`)
  })
}

/** Whether results are added to the query or to the fragment of a redirect address. */
export type RedirectMode = 'query' | 'fragment'

/** Adds results to a redirect address; its query is preserved. */
export function redirectWith(
  redirectUri: string,
  mode: RedirectMode,
  members: Readonly<Record<string, string>>,
): string {
  const added = new URLSearchParams(members).toString()
  if (mode === 'fragment') return `${redirectUri}#${added}`
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${added}`
}
