import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  Configuration,
  customFetch,
  type CustomFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import type { OauthProvider, OauthReturn, ProviderIdentity } from '../auth/oauth.js'
import type { Clock } from '../base/clock.js'
import { limits } from '../base/limits/limits.js'
import { faultOf } from './oauth-faults.js'

/** How this server is registered with an OpenID provider, and the address of the provider. */
export interface OpenIdSettings {
  issuerUrl: string
  clientId: string
  clientSecret: string
  fetch: CustomFetch
  clock: Clock
}

/** The discovery document of a provider, once for each way of sending the client secret, the likelier one first. */
type Discovered = Configuration[]

/** Subjects are at most 255 characters of ASCII (OpenID Connect Core, 2). */
const subjectShape = /^[\x20-\x7e]{1,255}$/

/**
 * An OpenID provider by its discovery (OpenID Connect Core): code flow with PKCE and nonce; the ID token's signature,
 * issuer, audience, authorised party, time and nonce are checked, and `iss` of the answer (RFC 9207).
 */
export function openIdProvider(settings: OpenIdSettings): OauthProvider {
  let known: { discovered: Promise<Discovered>; untilMs: number } | undefined
  const discovered = (): Promise<Discovered> => {
    const nowMs = settings.clock()
    if (known !== undefined && nowMs < known.untilMs) return known.discovered
    const fresh = { discovered: discover(settings), untilMs: nowMs + limits.oauthDiscoveryMs }
    known = fresh
    // After a failure the next sign-in asks again.
    fresh.discovered.catch(() => {
      if (known === fresh) known = undefined
    })
    return fresh.discovered
  }
  return {
    async authorizationUrl({ state, nonce, codeVerifier, callbackUrl }) {
      try {
        return buildAuthorizationUrl(first(await discovered()), {
          redirect_uri: callbackUrl,
          scope: 'openid email',
          state,
          nonce,
          code_challenge: await calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
        })
      } catch (error) {
        return faultOf(error)
      }
    },
    async identify(back) {
      try {
        return await identityOf(await discovered(), back, settings)
      } catch (error) {
        return faultOf(error)
      }
    },
  }
}

async function discover(settings: OpenIdSettings): Promise<Discovered> {
  const { issuerUrl, clientId, clientSecret, fetch } = settings
  const issuer = new URL(issuerUrl)
  const execute = issuer.protocol === 'http:' ? [allowInsecureRequests] : []
  const options = { [customFetch]: fetch, timeout: limits.oauthRequestMs / 1_000, execute }
  const server = (await discovery(issuer, clientId, undefined, undefined, options)).serverMetadata()
  return waysOf(server.token_endpoint_auth_methods_supported, clientSecret).map((way) => {
    const configuration = new Configuration(server, clientId, undefined, way)
    configuration[customFetch] = fetch
    enableNonRepudiationChecks(configuration)
    for (const extend of execute) extend(configuration)
    return configuration
  })
}

/**
 * Ways of sending the secret: the one that the provider prefers, and the other one, for which this client may be
 * registered.
 */
function waysOf(supported: readonly string[] | undefined, secret: string): ClientAuth[] {
  const ways: Readonly<Record<string, ClientAuth>> = {
    client_secret_basic: ClientSecretBasic(secret),
    client_secret_post: ClientSecretPost(secret),
  }
  const named = [...(supported ?? []), ...Object.keys(ways)]
  return [...new Set(named)].map((name) => ways[name]).filter((way) => way !== undefined)
}

async function identityOf(
  discovered: Discovered,
  back: OauthReturn,
  { clientId, clock }: OpenIdSettings,
): Promise<ProviderIdentity> {
  const tokens = await redeem(discovered, back)
  const claims = tokens.claims()
  if (claims === undefined || !subjectShape.test(claims.sub))
    throw new Error('Expected an ID token of a subject')
  // Checks that the library leaves to its caller (OpenID Connect Core, 3.1.3.7, 5 and 10).
  const { azp = clientId } = claims
  if (azp !== clientId) throw new Error('Expected an ID token that this client asked for')
  if (claims.iat * 1_000 > clock() + limits.oauthClockAheadMs)
    throw new Error('Expected an ID token that was issued by now')
  // Providers need not put the e-mail into the ID token (OpenID Connect Core, 5.4).
  const about: Readonly<Record<string, unknown>> =
    claims['email'] === undefined && first(discovered).serverMetadata().userinfo_endpoint !== undefined
      ? await fetchUserInfo(first(discovered), tokens.access_token, claims.sub)
      : claims
  const { email, email_verified: verified } = about
  // Some providers, Google's older answers among them, send a text here.
  const isVerified = verified === true || verified === 'true'
  return { subject: claims.sub, ...(typeof email === 'string' && isVerified && { verifiedEmail: email }) }
}

/** Exchanges the code; if a provider refuses one way of sending the secret, the other is tried. */
async function redeem(discovered: Discovered, back: OauthReturn) {
  const { state, nonce, codeVerifier, callbackUrl, query } = back
  const exchange = (configuration: Configuration) =>
    authorizationCodeGrant(configuration, new URL(`${callbackUrl}?${query}`), {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: codeVerifier,
      idTokenExpected: true,
    })
  const likely = first(discovered)
  try {
    return await exchange(likely)
  } catch (error) {
    const other = discovered.find((configuration) => configuration !== likely)
    if (other === undefined || !isUnknownClient(error)) throw error
    // The way that worked is used from now on.
    discovered.splice(0, discovered.length, other, likely)
    return exchange(other)
  }
}

function isUnknownClient(error: unknown): boolean {
  if (error instanceof ResponseBodyError) return error.error === 'invalid_client'
  return error instanceof WWWAuthenticateChallengeError && error.status === 401
}

function first(discovered: Discovered): Configuration {
  const [configuration] = discovered
  if (configuration === undefined) throw new Error('Expected a way to show the secret')
  return configuration
}
