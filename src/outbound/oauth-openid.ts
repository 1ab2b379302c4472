import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  clockTolerance,
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

/** The registration of this server with an OpenID provider. */
export interface OpenIdSettings {
  /** Exactly as the provider calls itself: with or without a slash at the end, it is another issuer. */
  issuerUrl: string
  clientId: string
  clientSecret: string
  fetch: CustomFetch
  clock: Clock
}

/** The configuration of a provider for each client authentication method, the more likely one first. */
type Discovered = Configuration[]

/** Subjects are at most 255 characters of ASCII (OpenID Connect Core, 2). */
const subjectShape = /^[\x20-\x7e]{1,255}$/

/**
 * An OpenID provider, configured by its discovery document (OpenID Connect Core): code flow with PKCE and
 * nonce. The signature, issuer, audience, authorised party, time and nonce of the ID token are verified, and
 * `iss` of the answer (RFC 9207).
 */
export function openIdProvider(settings: OpenIdSettings): OauthProvider {
  let known: { discovered: Promise<Discovered>; untilMs: number } | undefined
  const discovered = (): Promise<Discovered> => {
    const nowMs = settings.clock()
    if (known !== undefined && nowMs < known.untilMs) return known.discovered
    const fresh = { discovered: discover(settings), untilMs: nowMs + limits.oauthDiscoveryMs }
    known = fresh
    // After a failure, the next sign-in repeats the discovery.
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
  const tolerant = { [clockTolerance]: limits.oauthClockSkewSecs }
  const server = (await discovery(issuer, clientId, undefined, undefined, options)).serverMetadata()
  return authMethodsOf(server.token_endpoint_auth_methods_supported, clientSecret).map((method) => {
    const configuration = new Configuration(server, clientId, tolerant, method)
    configuration[customFetch] = fetch
    enableNonRepudiationChecks(configuration)
    for (const extend of execute) extend(configuration)
    return configuration
  })
}

/**
 * Client authentication methods: those that the provider lists first, because this client may be registered
 * for any.
 */
function authMethodsOf(supported: readonly string[] | undefined, secret: string): ClientAuth[] {
  const methods: Readonly<Record<string, ClientAuth>> = {
    client_secret_basic: ClientSecretBasic(secret),
    client_secret_post: ClientSecretPost(secret),
  }
  const names = [...(supported ?? []), ...Object.keys(methods)]
  return [...new Set(names)].map((name) => methods[name]).filter((method) => method !== undefined)
}

async function identityOf(
  discovered: Discovered,
  back: OauthReturn,
  { clientId, clock }: OpenIdSettings,
): Promise<ProviderIdentity> {
  const tokens = await redeem(discovered, back)
  const claims = tokens.claims()
  if (claims === undefined || !subjectShape.test(claims.sub))
    throw new Error('The ID token has no valid subject')
  // The library leaves these checks to its caller (OpenID Connect Core, 3.1.3.7, 5 and 10).
  const { azp = clientId } = claims
  if (azp !== clientId) throw new Error('The ID token was issued for another client')
  if (claims.iat > clock() / 1_000 + limits.oauthClockSkewSecs)
    throw new Error('The ID token was issued in the future')
  // The ID token need not contain the e-mail (OpenID Connect Core, 5.4).
  const about: Readonly<Record<string, unknown>> =
    claims['email'] === undefined && first(discovered).serverMetadata().userinfo_endpoint !== undefined
      ? await fetchUserInfo(first(discovered), tokens.access_token, claims.sub)
      : claims
  const { email, email_verified: verified } = about
  // Some providers send a text, as Google did.
  const isVerified = verified === true || verified === 'true'
  return { subject: claims.sub, ...(typeof email === 'string' && isVerified && { verifiedEmail: email }) }
}

/** Exchanges the code. If the provider refuses one client authentication method, the other is tried. */
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
    // The other method is used first from now on.
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
  if (configuration === undefined) throw new Error('No client authentication method')
  return configuration
}
