import type { OauthFault, OauthProvider, OauthProviderName } from '../auth/oauth.js'
import type { Clock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import type { Logger } from '../base/log.js'
import { oauthFault } from './oauth-faults.js'
import { boundedFetch } from './oauth-fetch.js'
import { githubProvider, type GithubSettings } from './oauth-github.js'
import { openIdProvider, type OpenIdSettings } from './oauth-openid.js'

/** The settings of the configured providers. */
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

/** The provider with a limit of waiting sign-ins, and a log line for each failure. */
function guarded(provider: OauthProvider, log: Logger): OauthProvider {
  let waiting = 0
  const guard = async <Answer extends object>(ask: () => Promise<Answer | OauthFault>) => {
    if (waiting >= limits.oauthWaitingMax) return told(oauthFault('temporarily_unavailable', 'Too many wait'))
    waiting++
    try {
      const answer = await ask()
      return 'error' in answer ? told(answer) : answer
    } finally {
      waiting--
    }
  }
  const told = (fault: OauthFault): OauthFault => {
    if (fault.error !== 'access_denied')
      log.warn({ reason: fault.reason }, 'a provider did not sign a user in')
    return fault
  }
  return {
    authorizationUrl: (start) => guard(() => provider.authorizationUrl(start)),
    identify: (back) => guard(() => provider.identify(back)),
  }
}
