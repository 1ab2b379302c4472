import type { OauthProvider, OauthProviderName } from '../auth/oauth.js'
import { oauthKey, oauthSecrets } from '../auth/oauth.js'
import { parseAllowedRedirect } from '../auth/redirect.js'
import { systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import type { OauthConfig } from '../settings/oauth.js'
import type { OauthFlow } from '../front/routes/auth-route.js'

/** Makes sign-in by other services, as far as it is configured. */
export async function oauthFlow(
  oauth: OauthConfig | undefined,
  { masterSeed, log }: { masterSeed: Uint8Array; log: Logger },
): Promise<OauthFlow> {
  const key = oauthKey(masterSeed)
  const allowed = oauth?.allowedRedirectUris ?? []
  return {
    providers: await providersOf(oauth, log),
    redirectBaseUrl: oauth?.redirectBaseUrl,
    allowedRedirects: allowed.map((text) => parseAllowedRedirect(text)).filter((one) => one !== undefined),
    allowAnyRedirect: oauth?.allowAnyRedirectUri ?? false,
    secretsOf: (namespace, state) => oauthSecrets(key, namespace.id, state),
  }
}

async function providersOf(
  oauth: OauthConfig | undefined,
  log: Logger,
): Promise<ReadonlyMap<OauthProviderName, OauthProvider>> {
  if (oauth?.google === undefined && oauth?.github === undefined) return new Map()
  // Loaded only if a provider is configured.
  const { oauthProviders } = await import('../outbound/oauth-providers.js')
  return oauthProviders(oauth, { clock: systemClock, log })
}
