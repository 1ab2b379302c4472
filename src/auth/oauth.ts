import { createHmac } from 'node:crypto'
import { deriveSeed } from '../strand/keys.js'
import type { RedirectMode } from './redirect.js'

/** The providers that users can sign in with (docs/adr/0011-oauth-sign-in.md). */
export const oauthProviderNames = ['google', 'github'] as const

export type OauthProviderName = (typeof oauthProviderNames)[number]

/** The provider that a path names; undefined when there is none of that name. */
export function oauthProviderName(text: string | undefined): OauthProviderName | undefined {
  return oauthProviderNames.find((name) => name === text)
}

/** Who came back from a provider. */
export interface ProviderIdentity {
  /** Never changes at the provider, and is never given to somebody else. */
  subject: string
  /** Absent unless the provider calls it verified. */
  verifiedEmail?: string
}

/**
 * Why a sign-in by a provider failed, as a code of RFC 6749, 4.1.2.1. The application gets the code; the reason stays
 * in the log.
 */
export interface OauthFault {
  error: 'access_denied' | 'server_error' | 'temporarily_unavailable'
  /** For the log. Holds no secret. */
  reason: string
}

/** Shared by both halves of a sign-in: nonce and verifier prove that they belong together. */
export interface OauthSecrets {
  /** Bound into the ID token (OpenID Connect Core, 3.1.2.1). */
  nonce: string
  /** RFC 7636. */
  codeVerifier: string
}

/** What a browser is sent to a provider with. */
export interface OauthStart extends OauthSecrets {
  state: string
  callbackUrl: string
}

/** What a browser came back from a provider with. */
export interface OauthReturn extends OauthStart {
  query: URLSearchParams
}

/** One service that users can sign in by. */
export interface OauthProvider {
  /** Where the browser is sent. */
  authorizationUrl(start: OauthStart): Promise<URL | OauthFault>
  /** Who came back: exchanges the code and checks all that the provider says. */
  identify(back: OauthReturn): Promise<ProviderIdentity | OauthFault>
}

/** A sign-in that is not finished, as the store keeps it under the SHA-256 of its state. */
export interface OauthStateRow {
  provider: OauthProviderName
  /** SHA-256 of the cookie of the browser that started it, 64 hex digits. */
  browserHash: string
  redirectUri: string
  mode: RedirectMode
  expiresAtMs: number
}

/** The key of nonces and verifiers, 32 bytes, derived from the master seed. */
export function oauthKey(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, 'strandfast/oauth-state/v1')
}

/**
 * Nonce and code verifier of a sign-in, derived from its state and a key. So nothing secret has to be stored while the
 * browser is away, and neither can be computed from the state alone, which passes through the provider.
 * @param state 43 characters, so that no two namespaces and states give the same bytes
 */
export function oauthSecrets(key: Uint8Array, namespaceId: string, state: string): OauthSecrets {
  const derive = (purpose: string) =>
    createHmac('sha256', key).update(`${purpose}\0${namespaceId}\0${state}`).digest('base64url')
  return { nonce: derive('nonce'), codeVerifier: derive('code-verifier') }
}

/*
 * The cookie that binds a sign-in by a provider to the browser that started it: another browser that
 * follows a link with the same state does not have the cookie (RFC 6749, 10.12). Sign-ins that run at the same time share it, so
 * that two tabs do not disturb each other.
 */

/** Where a cookie is set: for the address to which the provider sends the browser back. */
interface CookiePlace {
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
