import * as parsers from './parsers.js'
import { type Environment, type SettingFault, type ValueOf, setting, valuesOf } from './setting.js'

const googleIssuer = 'https://accounts.google.com'
const githubBase = 'https://github.com'
const githubApi = 'https://api.github.com'

const clientId = parsers.matching(/^[\x20-\x7e]{1,512}$/)

/** The settings of sign-in with providers (docs/SIGN-IN.md). */
export const oauthSettings = {
  oauthGoogleClientId: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GOOGLE_CLIENT_ID',
    default: undefined,
    description: 'The client id from Google. Enables sign-in with Google together with the client secret.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GOOGLE_CLIENT_SECRET',
    parse: clientId,
  }),
  oauthGoogleClientSecret: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GOOGLE_CLIENT_SECRET',
    default: undefined,
    description: 'The client secret from Google.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GOOGLE_CLIENT_ID',
    secret: true,
    parse: clientId,
  }),
  oauthGithubClientId: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_CLIENT_ID',
    default: undefined,
    description: 'The client id from GitHub. Enables sign-in with GitHub together with the client secret.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GITHUB_CLIENT_SECRET',
    parse: clientId,
  }),
  oauthGithubClientSecret: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_CLIENT_SECRET',
    default: undefined,
    description: 'The client secret from GitHub.',
    allowed: '1 to 512 printable ASCII characters, together with SERVICE_OAUTH_GITHUB_CLIENT_ID',
    secret: true,
    parse: clientId,
  }),
  oauthRedirectBaseUrl: setting<string | undefined>({
    name: 'SERVICE_OAUTH_REDIRECT_BASE_URL',
    default: undefined,
    description:
      'The address of this server for browsers. Register `/v1/auth/oauth/<provider>/callback` below it with each ' +
      'provider. Browsers must start a sign-in at the same address, because a cookie binds them to it.',
    allowed:
      'a URL as browsers write it, such as https://auth.example.com, without query, fragment and credentials',
    parse: parsers.browserBase,
  }),
  oauthAllowedRedirectUris: setting<readonly string[]>({
    name: 'SERVICE_OAUTH_ALLOWED_REDIRECT_URIS',
    default: [],
    description:
      'Addresses to which users may be redirected with their tokens. Each one includes everything below its path. If the ' +
      'list is empty, sign-in with a provider is refused.',
    allowed:
      'URLs such as https://app.example.com/signed-in, without query, fragment and credentials, separated by commas',
    parse: parsers.list((text) => parsers.allowedRedirect(text) !== undefined),
  }),
  oauthAllowAnyRedirectUri: setting({
    name: 'SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI',
    default: false,
    description: 'Allows redirects of users with their tokens to any address, for development only.',
    allowed: 'true or false; true only if SERVICE_ENV is development',
    parse: parsers.boolean,
  }),
  oauthGoogleIssuerUrl: setting({
    name: 'SERVICE_OAUTH_GOOGLE_ISSUER_URL',
    default: googleIssuer,
    description:
      'The OpenID provider for `google`, to use a test server or your provider instead: its issuer exactly as in its ' +
      'discovery document, also with or without a slash at the end. Accounts are identified by its subjects: change it ' +
      'only before the first sign-in.',
    allowed: 'an https URL such as https://id.example.com; http only outside production or on this machine',
    parse: parsers.webBase,
  }),
  oauthGithubBaseUrl: setting({
    name: 'SERVICE_OAUTH_GITHUB_BASE_URL',
    default: githubBase,
    description:
      'The GitHub server for `github`, to use a test or enterprise server instead. Accounts are identified by its user ' +
      'numbers: change it only before the first sign-in.',
    allowed:
      'an https URL such as https://github.example.com; http only outside production or on this machine',
    parse: parsers.oauthServerUrl,
  }),
  oauthGithubApiUrl: setting<string | undefined>({
    name: 'SERVICE_OAUTH_GITHUB_API_URL',
    default: undefined,
    defaultText: `\`${githubApi}\`, or \`/api/v3\` below SERVICE_OAUTH_GITHUB_BASE_URL if that is set`,
    description: 'The address of the API of the GitHub server.',
    allowed:
      'an https URL such as https://github.example.com/api/v3; http only outside production or on this machine',
    parse: parsers.oauthServerUrl,
  }),
} as const

/** The registration of this server with a provider. The secret is never logged. */
export interface OauthClient {
  readonly clientId: string
  readonly clientSecret: string
}

/** The settings of sign-in with providers, frozen. */
export interface OauthConfig {
  /** Absent without client credentials, as `github`. */
  readonly google?: OauthClient & { readonly issuerUrl: string }
  readonly github?: OauthClient & { readonly baseUrl: string; readonly apiUrl: string }
  /** If absent, sign-in with a provider answers 501. */
  readonly redirectBaseUrl?: string
  /** Valid addresses; if empty, none is allowed. */
  readonly allowedRedirectUris: readonly string[]
  readonly allowAnyRedirectUri: boolean
}

/** Reads the settings of sign-in with providers; undefined if none is set. */
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

/** The default API address of a GitHub server: a token must not be sent to another server. */
function apiOf(baseUrl: string): string {
  return new URL(baseUrl).href === new URL(githubBase).href
    ? githubApi
    : `${baseUrl.replace(/\/$/, '')}/api/v3`
}

/** Faults of settings that contradict each other, or are not allowed in production. */
export function oauthFaults(env: Environment, environment: 'development' | 'production'): SettingFault[] {
  const faults: SettingFault[] = []
  const addFault = ({ name, allowed }: { name: string; allowed: string }, given: string) =>
    faults.push({ name, given, allowed })
  const pairs = [
    [oauthSettings.oauthGoogleClientId, oauthSettings.oauthGoogleClientSecret],
    [oauthSettings.oauthGithubClientId, oauthSettings.oauthGithubClientSecret],
  ] as const
  for (const [id, secret] of pairs) {
    const [hasId, hasSecret] = [env[id.name] !== undefined, env[secret.name] !== undefined]
    if (hasId !== hasSecret) addFault(hasId ? secret : id, 'nothing')
  }
  if (environment !== 'production') return faults
  const { oauthAllowAnyRedirectUri, oauthGoogleIssuerUrl, oauthGithubBaseUrl, oauthGithubApiUrl } =
    oauthSettings
  if (env[oauthAllowAnyRedirectUri.name] === 'true') addFault(oauthAllowAnyRedirectUri, 'true in production')
  for (const server of [oauthGoogleIssuerUrl, oauthGithubBaseUrl, oauthGithubApiUrl]) {
    const text = env[server.name]
    const url = text === undefined ? undefined : parsers.oauthServerUrl(text)
    if (url !== undefined && isOpenHttp(url)) addFault(server, 'http in production')
  }
  return faults
}

/** Whether an address is plain HTTP over a network. */
function isOpenHttp(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

/** Warnings about settings that are allowed but rarely intended, as sentences without a full stop. */
export function oauthWarnings(
  oauth: OauthConfig | undefined,
  environment: 'development' | 'production',
): string[] {
  if (oauth === undefined) return []
  const warnings: string[] = []
  if (oauth.allowAnyRedirectUri) {
    warnings.push(
      'SERVICE_OAUTH_ALLOW_ANY_REDIRECT_URI=true: a link can redirect the tokens of users to any address',
    )
  }
  if (oauth.google === undefined && oauth.github === undefined) return warnings
  if (oauth.redirectBaseUrl === undefined) {
    warnings.push('SERVICE_OAUTH_REDIRECT_BASE_URL is not set: sign-in with a provider answers 501')
  } else if (environment === 'production' && isOpenHttp(oauth.redirectBaseUrl)) {
    warnings.push(
      'SERVICE_OAUTH_REDIRECT_BASE_URL is not https in production: an attacker on the network can sign in as users',
    )
  }
  if (oauth.allowedRedirectUris.length === 0 && !oauth.allowAnyRedirectUri) {
    warnings.push('SERVICE_OAUTH_ALLOWED_REDIRECT_URIS is not set: sign-in with a provider answers 400')
  }
  return warnings
}
