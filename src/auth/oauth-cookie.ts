import type { OauthProviderName } from './oauth.js'

/*
 * The cookie that binds a sign-in by a provider to the browser that started it: whoever follows a link with somebody
 * else's state does not have that person's cookie (RFC 6749, 10.12). Sign-ins that run at the same time share it, so
 * that two tabs do not disturb each other.
 */

/** Where a cookie is set: for the address to which the provider sends the browser back. */
export interface CookiePlace {
  provider: OauthProviderName
  callbackUrl: string
}

/**
 * The name of the cookie. Over https no other host can set one of this name, not even one of the same domain (RFC
 * 6265bis, 4.1.3.2).
 */
export function oauthCookieName({ provider, callbackUrl }: CookiePlace): string {
  return `${isSecure(callbackUrl) ? '__Host-' : ''}strandfast-oauth-${provider}`
}

/** The value of `Set-Cookie`. Lax: the browser comes back by a navigation from the provider's site. */
export function oauthCookie(place: CookiePlace, value: string, maxAgeSecs: number): string {
  const secure = isSecure(place.callbackUrl)
  // A name with `__Host-` requires the path of the whole host.
  const path = secure ? '/' : new URL('.', place.callbackUrl).pathname.replace(/\/$/, '')
  const attributes = `Path=${path}; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return `${oauthCookieName(place)}=${value}; ${attributes}`
}

/** The value of a cookie in a `Cookie` header; undefined when it is not there. */
export function readCookie(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const [found = '', value] = pair.trim().split('=', 2)
    if (found === name) return value
  }
  return undefined
}

function isSecure(url: string): boolean {
  return new URL(url).protocol === 'https:'
}
