import * as parsers from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

const googleIssuer = 'https://accounts.google.com'
const githubBase = 'https://github.com'
const githubApi = 'https://api.github.com'

const clientId = parsers.matching(/^[\x20-\x7e]{1,512}$/)

/** The settings of sign-in by other services (docs/OPERATIONS.md, Signing people in). */
export const oauthSettings = {
  oauthGoogleClientId: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GOOGLE_CLIENT_ID',
    default: undefined,
    description: 'The client id that Google gave. With its secret it switches sign-in by Google on.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GOOGLE_CLIENT_SECRET',
    parse: clientId,
  }),
  oauthGoogleClientSecret: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GOOGLE_CLIENT_SECRET',
    default: undefined,
    description: 'The client secret that Google gave.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GOOGLE_CLIENT_ID',
    secret: true,
    parse: clientId,
  }),
  oauthGithubClientId: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_CLIENT_ID',
    default: undefined,
    description: 'The client id that GitHub gave. With its secret it switches sign-in by GitHub on.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GITHUB_CLIENT_SECRET',
    parse: clientId,
  }),
  oauthGithubClientSecret: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_CLIENT_SECRET',
    default: undefined,
    description: 'The client secret that GitHub gave.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GITHUB_CLIENT_ID',
    secret: true,
    parse: clientId,
  }),
  oauthRedirectBaseUrl: setting<string | undefined>({
    name: 'SERVICE_OAUTH_REDIRECT_BASE_URL',
    default: undefined,
    description:
      'The address of this server as browsers reach it. Register `/v1/auth/oauth/<provider>/callback` below it with ' +
      'each provider. Browsers must start at the same address, since a cookie binds them to what they started.',
    allowed: 'a URL as https://auth.example.com, without query, fragment and credentials',
    parse: parsers.webBase,
  }),
  oauthAllowedRedirectUris: setting<readonly string[]>({
    name: 'SERVICE_OAUTH_ALLOWED_REDIRECT_URIS',
    default: [],
    description:
      'Where users may be sent with their tokens: an address allows itself and what lies below its path. Without any, ' +
      'nobody signs in by a provider.',
    allowed:
      'URLs as https://app.example.com/signed-in, without query, fragment and credentials, separated by commas',
    parse: parsers.list((text) => parsers.allowedRedirect(text) !== undefined),
  }),
  oauthAllowAnyRedirectUri: setting({
    name: 'SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI',
    default: false,
    description: 'Sends users with their tokens wherever a link says, for development only.',
    allowed: 'true or false; true only where SERVICE_ENV is development',
    parse: parsers.boolean,
  }),
  oauthGoogleIssuerUrl: setting({
    name: 'SERVICE_OAUTH_GOOGLE_ISSUER_URL',
    default: googleIssuer,
    description:
      'The OpenID provider behind `google`, for tests or one of your own. Its subjects are taken for those of the ' +
      'same accounts: change it only while there are none.',
    allowed: 'an https URL as https://id.example.com; http only outside production or on this machine',
    parse: parsers.oauthServerUrl,
  }),
  oauthGithubBaseUrl: setting({
    name: 'SERVICE_OAUTH_GITHUB_BASE_URL',
    default: githubBase,
    description:
      'The GitHub behind `github`, for tests or an enterprise server. Its user numbers are taken for those of the ' +
      'same accounts: change it only while there are none.',
    allowed: 'an https URL as https://github.example.com; http only outside production or on this machine',
    parse: parsers.oauthServerUrl,
  }),
  oauthGithubApiUrl: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_API_URL',
    default: undefined,
    defaultText: `\`${githubApi}\`; of another SERVICE_OAUTH_GITHUB_BASE_URL its \`/api/v3\``,
    description: "The address of that GitHub's API.",
    allowed:
      'an https URL as https://github.example.com/api/v3; http only outside production or on this machine',
    parse: parsers.oauthServerUrl,
  }),
} as const

/** How this server is registered with a provider. The secret is never logged. */
export interface OauthClient {
  readonly clientId: string
  readonly clientSecret: string
}

/** Sign-in by other services, frozen. */
export interface OauthConfig {
  /** Absent without credentials. */
  readonly google?: OauthClient & { readonly issuerUrl: string }
  readonly github?: OauthClient & { readonly baseUrl: string; readonly apiUrl: string }
  /** Absent: no provider knows where to send browsers back to. */
  readonly redirectBaseUrl?: string
  /** Each valid; empty: none is allowed. */
  readonly allowedRedirectUris: readonly string[]
  readonly allowAnyRedirectUri: boolean
}

/** The part of the configuration for sign-in by other services, or undefined where nothing of it is set. */
export function readOauth(value: ValueOf): OauthConfig | undefined {
  const {
    oauthRedirectBaseUrl: redirectBaseUrl,
    oauthAllowedRedirectUris: allowedRedirectUris,
    oauthAllowAnyRedirectUri: allowAnyRedirectUri,
    oauthGoogleIssuerUrl: issuerUrl,
    oauthGithubBaseUrl: baseUrl,
    ...given
  } = valuesOf(oauthSettings, value)
  const apiUrl = given.oauthGithubApiUrl ?? apiOf(baseUrl)
  const google = clientOf(given.oauthGoogleClientId, given.oauthGoogleClientSecret)
  const github = clientOf(given.oauthGithubClientId, given.oauthGithubClientSecret)
  const isUsed = allowedRedirectUris.length > 0 || allowAnyRedirectUri || redirectBaseUrl !== undefined
  if (google === undefined && github === undefined && !isUsed) return undefined
  return Object.freeze({
    ...(google !== undefined && { google: Object.freeze({ ...google, issuerUrl }) }),
    ...(github !== undefined && { github: Object.freeze({ ...github, baseUrl, apiUrl }) }),
    ...(redirectBaseUrl !== undefined && { redirectBaseUrl }),
    allowedRedirectUris,
    allowAnyRedirectUri,
  })
}

function clientOf(clientId: string | undefined, clientSecret: string | undefined): OauthClient | undefined {
  return clientId === undefined || clientSecret === undefined ? undefined : { clientId, clientSecret }
}

/** The API of a GitHub unless a setting says otherwise: a token of one GitHub must not be sent to another. */
function apiOf(baseUrl: string): string {
  return new URL(baseUrl).href === new URL(githubBase).href
    ? githubApi
    : `${baseUrl.replace(/\/$/, '')}/api/v3`
}

/** Faults of settings that are valid alone but not together, or not in production. */
export function oauthFaults(env: Environment, environment: 'development' | 'production'): SettingFault[] {
  const faults: SettingFault[] = []
  const blame = ({ name, allowed }: { name: string; allowed: string }, given: string) =>
    faults.push({ name, given, allowed })
  const pairs = [
    [oauthSettings.oauthGoogleClientId, oauthSettings.oauthGoogleClientSecret],
    [oauthSettings.oauthGithubClientId, oauthSettings.oauthGithubClientSecret],
  ] as const
  for (const [id, secret] of pairs) {
    const [hasId, hasSecret] = [env[id.name] !== undefined, env[secret.name] !== undefined]
    if (hasId !== hasSecret) blame(hasId ? secret : id, 'nothing')
  }
  if (environment !== 'production') return faults
  const { oauthAllowAnyRedirectUri, oauthGoogleIssuerUrl, oauthGithubBaseUrl, oauthGithubApiUrl } =
    oauthSettings
  if (env[oauthAllowAnyRedirectUri.name] === 'true') blame(oauthAllowAnyRedirectUri, 'true in production')
  for (const server of [oauthGoogleIssuerUrl, oauthGithubBaseUrl, oauthGithubApiUrl]) {
    const text = env[server.name]
    const url = text === undefined ? undefined : parsers.oauthServerUrl(text)
    if (url !== undefined && isOpenHttp(url)) blame(server, 'http in production')
  }
  return faults
}

/** Plain HTTP over a network, where others can listen. */
function isOpenHttp(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Warnings, sentences without a full stop, about settings that are allowed but seldom intended. */
export function oauthWarnings(
  oauth: OauthConfig | undefined,
  environment: 'development' | 'production',
): string[] {
  if (oauth === undefined) return []
  const warnings: string[] = []
  if (oauth.allowAnyRedirectUri) {
    warnings.push(
      'SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI=true: any link can have the tokens of users sent anywhere',
    )
  }
  if (oauth.google === undefined && oauth.github === undefined) return warnings
  if (oauth.redirectBaseUrl === undefined) {
    warnings.push('SERVICE_OAUTH_REDIRECT_BASE_URL is not set: sign-in by a provider answers 501')
  } else if (environment === 'production' && isOpenHttp(oauth.redirectBaseUrl)) {
    warnings.push(
      'SERVICE_OAUTH_REDIRECT_BASE_URL is not https in production: whoever listens on the way can sign in as users',
    )
  }
  if (oauth.allowedRedirectUris.length === 0 && !oauth.allowAnyRedirectUri) {
    warnings.push('SERVICE_OAUTH_ALLOWED_REDIRECT_URIS is not set: sign-in by a provider answers 400')
  }
  return warnings
}
