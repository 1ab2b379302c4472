import { createHmac } from 'node:crypto'
import { type Checked, isHash, isKeyNumber, isText, oneOf, fields } from '../base/shape.js'
import { deriveSeed } from '../strand/keys.js'
import type { RedirectMode } from './redirect.js'

/** The providers that users can sign in with (docs/adr/0011-oauth-sign-in.md). */
export const oauthProviderNames = ['google', 'github'] as const

export type OauthProviderName = (typeof oauthProviderNames)[number]

/** The provider called `text`; undefined if there is none. */
export function oauthProviderName(text: string | undefined): OauthProviderName | undefined {
  return oauthProviderNames.find((name) => name === text)
}

export interface ProviderIdentity {
  /** The provider never changes or reassigns it. */
  subject: string
  /** Absent unless the provider has verified it. */
  verifiedEmail?: string
}

/**
 * Why a sign-in with a provider failed. The application gets the code (RFC 6749, 4.1.2.1), the log gets the
 * reason.
 */
export interface OauthFault {
  error: 'access_denied' | 'server_error' | 'temporarily_unavailable'
  /** For the log; contains no secret. */
  reason: string
}

/** Proves that the start and the end of a sign-in belong together. */
export interface OauthSecrets {
  /** Bound into the ID token (OpenID Connect Core, 3.1.2.1). */
  nonce: string
  /** RFC 7636. */
  codeVerifier: string
}

/** The parameters of a redirect to a provider. */
export interface OauthStart extends OauthSecrets {
  state: string
  callbackUrl: string
}

/** The parameters of the redirect back from a provider. */
export interface OauthReturn extends OauthStart {
  query: URLSearchParams
}

/** A provider that users can sign in with. */
export interface OauthProvider {
  /** The address to which the browser is redirected. */
  authorizationUrl(start: OauthStart): Promise<URL | OauthFault>
  /** Exchanges the code, verifies the answer of the provider, and returns the identity of the user. */
  identify(back: OauthReturn): Promise<ProviderIdentity | OauthFault>
}

export const isOauthStateRow = fields({
  provider: oneOf(...oauthProviderNames),
  /** SHA-256 of the cookie of the browser that started it, 64 hex digits. */
  browserHash: isHash,
  redirectUri: isText,
  mode: oneOf<RedirectMode>('query', 'fragment'),
  expiresAtMs: isKeyNumber,
})

/** An unfinished sign-in, stored under the SHA-256 of its state. */
export type OauthStateRow = Checked<typeof isOauthStateRow>

/** The key of nonces and verifiers, 32 bytes, derived from the master seed. */
export function oauthKey(masterSeed: Uint8Array): Buffer {
  return deriveSeed(masterSeed, 'strandfast/oauth-state/v1')
}

/**
 * Derives the nonce and code verifier of a sign-in from its state and a key. No secret has to be stored
 * during the sign-in, and the state, which the provider sees, does not reveal them.
 * @param state 43 characters, so that two pairs of namespace and state never give the same bytes
 */
export function oauthSecrets(key: Uint8Array, namespaceId: string, state: string): OauthSecrets {
  const derive = (purpose: string) =>
    createHmac('sha256', key).update(`${purpose}\0${namespaceId}\0${state}`).digest('base64url')
  return { nonce: derive('nonce'), codeVerifier: derive('code-verifier') }
}

/*
 * A cookie binds a sign-in with a provider to the browser that started it: a user who follows a link with the
 * state of an attacker does not have the cookie of the attacker (RFC 6749, 10.12). Concurrent sign-ins share
 * it, so that two tabs work.
 */

interface CookieContext {
  provider: OauthProviderName
  callbackUrl: string
}

/**
 * The name of the cookie. Over https, `__Host-` prevents other hosts of the domain from setting it (RFC
 * 6265bis, 4.1.3.2).
 */
export function oauthCookieName({ provider, callbackUrl }: CookieContext): string {
  return `${isSecure(callbackUrl) ? '__Host-' : ''}strandfast-oauth-${provider}`
}

/**
 * The value of `Set-Cookie`. SameSite is Lax because the browser returns by a navigation from the site of the
 * provider.
 */
export function oauthCookie(context: CookieContext, value: string, maxAgeSecs: number): string {
  const secure = isSecure(context.callbackUrl)
  // A name with `__Host-` requires the path `/`.
  const path = secure ? '/' : new URL('.', context.callbackUrl).pathname.replace(/\/$/, '')
  const attributes = `Path=${path}; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  return `${oauthCookieName(context)}=${value}; ${attributes}`
}

/** The value of a cookie in a `Cookie` header; undefined if it is missing. */
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
