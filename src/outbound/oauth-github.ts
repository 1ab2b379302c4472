import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  ClientSecretPost,
  Configuration,
  customFetch,
  type CustomFetch,
  fetchProtectedResource,
} from 'openid-client'
import type { OauthProvider, OauthReturn, ProviderIdentity } from '../auth/oauth.js'
import { faultOf } from './oauth-faults.js'

/** The registration of this server with a GitHub server, and the addresses of that server. */
export interface GithubSettings {
  /** The address for browsers. */
  baseUrl: string
  apiUrl: string
  clientId: string
  clientSecret: string
  fetch: CustomFetch
}

const apiHeaders = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' }

/**
 * GitHub, which is not an OpenID provider: code flow with PKCE, then two requests to the API. The subject is
 * the number of the user, because names can be reassigned; the e-mail is the primary one, if it is verified.
 */
export function githubProvider(settings: GithubSettings): OauthProvider {
  const configuration = configurationOf(settings)
  return {
    async authorizationUrl({ state, codeVerifier, callbackUrl }) {
      return buildAuthorizationUrl(configuration, {
        redirect_uri: callbackUrl,
        scope: 'user:email',
        state,
        code_challenge: await calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      })
    },
    async identify(back) {
      try {
        return await identityOf(configuration, settings.apiUrl, back)
      } catch (error) {
        return faultOf(error)
      }
    },
  }
}

function configurationOf({ baseUrl, apiUrl, clientId, clientSecret, fetch }: GithubSettings): Configuration {
  const oauth = `${baseUrl}/login/oauth`
  const server = {
    issuer: oauth,
    authorization_endpoint: `${oauth}/authorize`,
    token_endpoint: `${oauth}/access_token`,
  }
  const configuration = new Configuration(server, clientId, undefined, ClientSecretPost(clientSecret))
  configuration[customFetch] = fetch
  if ([baseUrl, apiUrl].some((url) => url.startsWith('http:'))) allowInsecureRequests(configuration)
  return configuration
}

async function identityOf(
  configuration: Configuration,
  apiUrl: string,
  { state, codeVerifier, callbackUrl, query }: OauthReturn,
): Promise<ProviderIdentity> {
  const tokens = await authorizationCodeGrant(configuration, new URL(`${callbackUrl}?${query}`), {
    expectedState: state,
    pkceCodeVerifier: codeVerifier,
  })
  const get = async (path: string): Promise<unknown> => {
    const url = new URL(apiUrl + path)
    const response = await fetchProtectedResource(
      configuration,
      tokens.access_token,
      url,
      'GET',
      null,
      new Headers(apiHeaders),
    )
    if (response.status !== 200)
      throw new Error(`The API answered ${path} with an error`, { cause: response })
    return response.json()
  }
  const subject = subjectOf(await get('/user'))
  const verifiedEmail = primaryOf(await get('/user/emails'))
  return { subject, ...(verifiedEmail !== undefined && { verifiedEmail }) }
}

function subjectOf(user: unknown): string {
  const id = member(user, 'id')
  if (typeof id === 'number' && Number.isSafeInteger(id) && id > 0) return String(id)
  throw new Error('The user has no valid id')
}

/** The primary e-mail, if it is verified. */
function primaryOf(emails: unknown): string | undefined {
  if (!Array.isArray(emails)) throw new Error('The answer is not a list of e-mails')
  const primary: unknown = emails.find((one) => member(one, 'primary') === true)
  const email = member(primary, 'email')
  return typeof email === 'string' && member(primary, 'verified') === true ? email : undefined
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
