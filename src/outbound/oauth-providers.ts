import type { OauthFault, OauthProvider, OauthProviderName } from '../auth/oauth.js'
import type { Clock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { oauthFault } from './oauth-faults.js'
import { githubProvider, type GithubSettings } from './oauth-github.js'
import { openIdProvider, type OpenIdSettings } from './oauth-openid.js'
import type { CustomFetch } from 'openid-client'

export interface ProviderSettings {
  google?: Omit<OpenIdSettings, 'fetch' | 'clock'>
  github?: Omit<GithubSettings, 'fetch'>
}

/** The configured providers, by their names. */
export function oauthProviders(
  { google, github }: ProviderSettings,
  { clock, log, requestMs = limits.oauthRequestMs }: { clock: Clock; log: Logger; requestMs?: number },
): ReadonlyMap<OauthProviderName, OauthProvider> {
  const fetch = boundedFetch({ requestMs })
  const providers = new Map<OauthProviderName, OauthProvider>()
  if (google !== undefined) providers.set('google', openIdProvider({ ...google, fetch, clock }))
  if (github !== undefined) providers.set('github', githubProvider({ ...github, fetch }))
  return new Map(
    [...providers].map(([name, provider]) => [name, guarded(provider, log.child({ provider: name }))]),
  )
}

/** Adds a limit of waiting sign-ins, and a log line for each failure. */
function guarded(provider: OauthProvider, log: Logger): OauthProvider {
  let waiting = 0
  const guard = async <Answer extends object>(call: () => Promise<Answer | OauthFault>) => {
    if (waiting >= limits.oauthWaitingMax)
      return logged(oauthFault('temporarily_unavailable', 'Too many sign-ins are waiting'))
    waiting++
    try {
      const answer = await call()
      return 'error' in answer ? logged(answer) : answer
    } finally {
      waiting--
    }
  }
  const logged = (fault: OauthFault): OauthFault => {
    if (fault.error !== 'access_denied')
      log.warn({ reason: fault.reason }, 'a sign-in with a provider failed')
    return fault
  }
  return {
    authorizationUrl: (start) => guard(() => provider.authorizationUrl(start)),
    identify: (back) => guard(() => provider.identify(back)),
  }
}

/**
 * The `fetch` for all calls to providers. It does not follow redirects, and limits the time of a request and
 * the bytes of an answer.
 * @throws Error beyond a limit, or if the provider is unreachable
 */
export function boundedFetch({ requestMs }: { requestMs: number }): CustomFetch {
  return async (url, { method, headers, body }) => {
    const response = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(requestMs),
      ...(body !== undefined && body !== null && { body: bodyOf(body) }),
    })
    const bytes = await readBounded(response)
    return new Response(bytes, {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }
}

/** The library only sends forms, but its type allows all bodies of `fetch`. */
function bodyOf(body: unknown): string | URLSearchParams {
  if (typeof body === 'string' || body instanceof URLSearchParams) return body
  throw new Error('The body of a request to a provider is not a form')
}

/** The body of an answer; null if the status allows none. */
async function readBounded({ body }: Response): Promise<Uint8Array<ArrayBuffer> | null> {
  if (body === null) return null
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of body) {
    length += part.byteLength
    if (length > limits.oauthAnswerBytesMax) throw new Error('The answer of the provider is too large')
    parts.push(part)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.byteLength
  }
  return bytes
}
