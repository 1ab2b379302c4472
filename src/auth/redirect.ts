/**
 * Where users may be sent with their tokens (docs/adr/0011-oauth-sign-in.md). Anybody can make a link to the sign-in;
 * only this check keeps the tokens of whoever follows it from going to an address of the link's author.
 */

/** An address of the list: it allows itself and everything below its path. */
export interface AllowedRedirect {
  origin: string
  /** Without a slash at its end, unless it allows only what lies below it. */
  path: string
}

/** Characters of a redirect address. */
const CHARS_MAX = 2_048

/** Scheme, authority and path of a web address, then query and fragment, all of visible ASCII. */
const shape = /^https?:\/\/([^/?#@\\]+)(\/[^?#\\]*)?(\?[^#\\]*)?(#.*)?$/i

/**
 * Percent-encoded characters of a path that servers on the way decode to something else: controls, `%`, `/` and `\`.
 */
const encodedTrick = /%(?:[01][0-9a-f]|7f|25|2f|5c)/i

/** Names of the parameters that this server adds; an address that already has one of them could forge a result. */
const addedNames: ReadonlySet<string> = new Set([
  'token',
  'refresh_token',
  'token_type',
  'expires_in',
  'email',
  'error',
  'error_description',
])

/** An address of SERVICE_OAUTH_ALLOWED_REDIRECT_URIS; undefined when it cannot be one. */
export function parseAllowedRedirect(text: string): AllowedRedirect | undefined {
  const url = parseRedirect(text)
  if (url === undefined || text.includes('?')) return undefined
  const path = url.pathname === '/' ? '' : url.pathname
  return { origin: url.origin, path }
}

/**
 * A redirect address as a browser would read it. Whatever browsers, proxies and servers read in different ways is
 * refused: user names, backslashes, dot segments (encoded ones and `..;` too), empty segments, controls, fragments.
 * @returns undefined when it is no address to send tokens to, whatever the list says
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

/** Whether every percent sign encodes something, and all together UTF-8: servers read other bytes in different ways. */
function isDecodable(path: string): boolean {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** A segment that some servers read as `.` or `..`: they cut parameters after `;` off before they resolve it. */
function isTrick(segment: string): boolean {
  const [name = ''] = segment.replaceAll(/%2e/gi, '.').replaceAll(/%3b/gi, ';').split(';')
  return name === '.' || name === '..'
}

/** Whether an address is one of the list or lies below one: same origin, and the path up to a `/`. */
export function isAllowedRedirect(url: URL, allowed: readonly AllowedRedirect[]): boolean {
  return allowed.some(({ origin, path }) => {
    if (url.origin !== origin) return false
    return url.pathname === path || url.pathname.startsWith(path.endsWith('/') ? path : `${path}/`)
  })
}

/** How results are put into a redirect address: after `?` or after `#`. */
export type RedirectMode = 'query' | 'fragment'

/** The address with the results, its own query unchanged. */
export function redirectWith(
  redirectUri: string,
  mode: RedirectMode,
  members: Readonly<Record<string, string>>,
): string {
  const added = new URLSearchParams(members).toString()
  if (mode === 'fragment') return `${redirectUri}#${added}`
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${added}`
}
