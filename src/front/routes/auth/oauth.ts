import { Type } from 'typebox'
import { normalizeEmail } from '../../../auth/email.js'
import {
  oauthProviderName,
  oauthProviderNames,
  type OauthFault,
  type OauthProvider,
  type OauthProviderName,
  type ProviderIdentity,
  oauthCookie,
  oauthCookieName,
  readCookie,
} from '../../../auth/oauth.js'
import { hashOneTimeToken, makeOneTimeToken } from '../../../auth/one-time-token.js'
import { isAllowedRedirect, parseRedirect, type RedirectMode, redirectWith } from '../../../auth/redirect.js'
import type { SignInReason } from '../../../auth/sign-in-failure.js'
import { refuse, type Refusal, statusOf } from '../../../base/errors.js'
import { limits } from '../../../base/limits/limits.js'
import type { AuthContext, AuthRequest, AuthRouteEntry } from '../auth-route.js'
import { plainPage, plainPageHeaders } from '../mail-pages.js'
import { faultyParameter } from '../parameters.js'
import type { Answer, RouteDocs } from '../route.js'
import { issue, signInFailed, unexpectedAnswer } from './answers.js'

/** A configured provider, and the URL to which it redirects browsers. */
interface ConfiguredProvider {
  provider: OauthProviderName
  client: OauthProvider
  callbackUrl: string
}

/** Where the result of a sign-in is sent. */
interface ResultTarget {
  redirectUri: string
  mode: RedirectMode
}

const answers: RouteDocs['answers'] = {
  302: { mediaType: 'text/plain', description: 'A redirect: only `Location` matters' },
}

const notStartedHere = refuse(
  'oauth_failed',
  'This browser did not start the sign-in in the last ten minutes: start it again',
)
const noneAllowed = refuse(
  'redirect_not_allowed',
  'This server allows no redirect_uri: SERVICE_OAUTH_ALLOWED_REDIRECT_URIS is not set',
)
const notAllowed = refuse(
  'redirect_not_allowed',
  'Expected one redirect_uri that SERVICE_OAUTH_ALLOWED_REDIRECT_URIS lists, or one below it',
)

const path = {
  provider: Type.Enum(['google', 'github'], { description: 'The identity provider', example: 'google' }),
}

/**
 * GET /v1/auth/oauth/:provider/authorize: redirects the browser to the provider, and binds the sign-in to the
 * browser with a cookie.
 */
const authorize: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/oauth/:provider/authorize',
  caller: 'anyone',
  writes: true,
  errors: ['not_found', 'redirect_not_allowed', 'oauth_not_configured'],
  docs: {
    summary: 'Start a sign-in with another provider: open this address in a browser',
    path,
    query: {
      redirect_uri: Type.String({
        description:
          'Where the tokens are sent: an address of SERVICE_OAUTH_ALLOWED_REDIRECT_URIS, or below one',
      }),
      redirect_mode: Type.Enum(['query', 'fragment'], {
        default: 'query',
        description: 'Whether they follow `?`, for a server, or `#`, for a page',
      }),
    },
    required: ['redirect_uri'],
    answers,
  },
  async handle(request, context) {
    const provider = providerOf(request)
    if (typeof provider !== 'string') return provider
    const { allowedRedirects, allowAnyRedirect } = context.oauth
    if (allowedRedirects.length === 0 && !allowAnyRedirect) return noneAllowed
    const setUp = configuredProvider(provider, request, context)
    if ('code' in setUp) return setUp
    const target = targetOf(request, context)
    return 'code' in target ? target : start(request, context, { ...setUp, ...target })
  },
}

/**
 * GET /v1/auth/oauth/:provider/callback: signs in the user whom the provider redirects back. Until the state
 * is known to belong to this browser, the answer is a problem. After that, every outcome is sent to the
 * application.
 */
const callback: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/oauth/:provider/callback',
  anyQuery: true,
  caller: 'anyone',
  writes: true,
  errors: ['not_found', 'oauth_failed', 'oauth_not_configured'],
  docs: {
    summary: 'The address to which a provider redirects the browser',
    path,
    query: {
      state: Type.String({ description: 'The state that authorize sent to the provider; valid once' }),
      code: Type.String({
        description: 'The authorization code, which the server exchanges for the identity',
      }),
      iss: Type.String({ description: 'The issuer of the response (RFC 9207)' }),
      error: Type.String({ description: 'Why there is no code (RFC 6749, 4.1.2.1)' }),
    },
    required: ['state'],
    answers,
  },
  async handle(request, context) {
    const provider = providerOf(request)
    if (typeof provider !== 'string') return provider
    const setUp = configuredProvider(provider, request, context)
    if ('code' in setUp) return setUp
    const [state = '', ...others] = request.query.getAll('state')
    const stateHash = others.length === 0 ? hashOneTimeToken(state) : undefined
    if (stateHash === undefined) {
      const failure = { method: 'oauth', reason: 'unknown_state', refusal: notStartedHere } as const
      return notFinished(request, await signInFailed(request, context, failure))
    }
    // Without the cookie it is another browser: no stored hash is empty.
    const browserHash = hashOneTimeToken(browserOf(request, setUp) ?? '') ?? ''
    const oauthReturn = await context.change(request, {
      kind: 'oauthReturn',
      stateHash,
      provider,
      browserHash,
    })
    if ('code' in oauthReturn || oauthReturn.kind !== 'oauthReturn')
      return notFinished(request, unexpectedAnswer(oauthReturn))
    const { client, callbackUrl } = setUp
    const secrets = context.oauth.secretsOf(request.namespace, state)
    const identity = await client.identify({ state, callbackUrl, query: request.query, ...secrets })
    const results =
      'error' in identity
        ? await recordRefusal(request, context, identity)
        : await signIn(request, context, { provider, identity })
    return redirectTo(redirectWith(oauthReturn.redirectUri, oauthReturn.mode, results))
  },
}

/** Records the error of a provider. @returns the query parameters of the redirect to the application */
async function recordRefusal(
  request: AuthRequest,
  context: AuthContext,
  { error }: OauthFault,
): Promise<Record<string, string>> {
  await context.change(request, { kind: 'signInFailed', method: 'oauth', reason: reasons[error] })
  return failed(error)
}

const reasons = {
  access_denied: 'access_denied',
  temporarily_unavailable: 'provider_away',
  server_error: 'provider_error',
} as const satisfies Record<OauthFault['error'], SignInReason>

function providerOf({ params }: AuthRequest): OauthProviderName | Refusal {
  const detail = `Expected one of ${oauthProviderNames.join(', ')}`
  return oauthProviderName(params.at(-1)) ?? refuse('not_found', detail)
}

/** The configured provider; 501 oauth_not_configured. */
function configuredProvider(
  provider: OauthProviderName,
  { namespace }: AuthRequest,
  { oauth }: AuthContext,
): ConfiguredProvider | Refusal {
  const client = oauth.providers.get(provider)
  const { redirectBaseUrl } = oauth
  if (client === undefined || redirectBaseUrl === undefined) {
    const name = `SERVICE_OAUTH_${provider.toUpperCase()}_CLIENT_ID`
    const detail = `Sign-in with this provider is not configured: set ${name}, its secret and SERVICE_OAUTH_REDIRECT_BASE_URL`
    return refuse('oauth_not_configured', detail)
  }
  const organism = namespace.id === '' ? '' : `/organisms/${namespace.id}`
  const base = redirectBaseUrl.replace(/\/+$/, '')
  return { provider, client, callbackUrl: `${base}/v1${organism}/auth/oauth/${provider}/callback` }
}

/** Where the result is sent; 400, and never a redirect, for an address that is not allowed. */
function targetOf({ query }: AuthRequest, { oauth }: AuthContext): ResultTarget | Refusal {
  const url = parseRedirect(query.get('redirect_uri') ?? '')
  if (url === undefined) return notAllowed
  if (!oauth.allowAnyRedirect && !isAllowedRedirect(url, oauth.allowedRedirects)) return notAllowed
  const mode = query.get('redirect_mode') ?? 'query'
  if (mode !== 'query' && mode !== 'fragment') {
    return faultyParameter('?redirect_mode', 'Expected query or fragment')
  }
  return { redirectUri: url.href, mode }
}

async function start(
  request: AuthRequest,
  context: AuthContext,
  { provider, client, callbackUrl, redirectUri, mode }: ConfiguredProvider & ResultTarget,
): Promise<Answer | Refusal> {
  const { token: state, hash: stateHash } = makeOneTimeToken(context.random)
  const secrets = context.oauth.secretsOf(request.namespace, state)
  const url = await client.authorizationUrl({ state, callbackUrl, ...secrets })
  if ('error' in url)
    return redirectTo(redirectWith(redirectUri, mode, await recordRefusal(request, context, url)))
  const cookieScope = { provider, callbackUrl }
  const cookie = browserOf(request, cookieScope)
  const cookieHash = cookie === undefined ? undefined : hashOneTimeToken(cookie)
  const browser =
    cookie === undefined || cookieHash === undefined
      ? makeOneTimeToken(context.random)
      : { token: cookie, hash: cookieHash }
  const expiresAtMs = context.nowMs() + limits.oauthStateSecs * 1_000
  const row = { provider, browserHash: browser.hash, redirectUri, mode, expiresAtMs }
  const answer = await context.change(request, { kind: 'oauthStart', stateHash, row })
  if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
  return redirectTo(url.href, [
    ['Set-Cookie', oauthCookie(cookieScope, browser.token, limits.oauthStateSecs)],
  ])
}

/**
 * A sign-in of another browser, or one that has ended. A browser gets a page, with a link to the application
 * if it is known; every other client gets a problem without that address.
 */
function notFinished({ headers }: AuthRequest, refusal: Refusal): Answer | Refusal {
  if (refusal.code !== 'oauth_failed') return refusal
  const { extra = {}, ...problem } = refusal
  if (!headers.accept.includes('text/html')) return problem
  const uri = extra['redirect_uri']
  const { origin, host } = typeof uri === 'string' ? new URL(uri) : { origin: undefined, host: undefined }
  const application = origin === undefined ? 'the application' : `<a href="${origin}/">${host}</a>`
  const reason = 'It was started in another browser or more than ten minutes ago, or it was already finished.'
  return {
    status: statusOf(refusal),
    body: plainPage(
      'The sign-in was not finished',
      `<p>${reason}</p>\n<p>Go back to ${application} and sign in again.</p>\n`,
    ),
    contentType: 'text/html; charset=utf-8',
    headers: [...plainPageHeaders(), ['WWW-Authenticate', 'Bearer']],
  }
}

/** The cookie that authorize set in the browser. */
function browserOf(
  { headers }: AuthRequest,
  cookieScope: Pick<ConfiguredProvider, 'provider' | 'callbackUrl'>,
): string | undefined {
  return readCookie(headers.cookie, oauthCookieName(cookieScope))
}

/**
 * Signs in the user whom the provider has identified. @returns the query parameters of the redirect to the
 * application
 */
async function signIn(
  request: AuthRequest,
  context: AuthContext,
  { provider, identity }: { provider: OauthProviderName; identity: ProviderIdentity },
): Promise<Record<string, string>> {
  const { subject, verifiedEmail } = identity
  const email = verifiedEmail === undefined ? undefined : normalizeEmail(verifiedEmail)
  const change = { kind: 'oauthLogin', provider, subject, ...(email !== undefined && { email }) } as const
  const answer = await context.change(request, change)
  if ('code' in answer || answer.kind !== 'signedIn') return refusedAs(unexpectedAnswer(answer))
  const { token, refresh_token, token_type, expires_in } = await issue(request, context, answer)
  return { token, refresh_token, token_type, expires_in: String(expires_in), email: answer.user.email }
}

function refusedAs(refusal: Refusal): Record<string, string> {
  if (refusal.code === 'email_not_verified') {
    return { ...failed('access_denied'), error_description: 'The provider has not verified the e-mail' }
  }
  if (refusal.code === 'email_exists') {
    return {
      ...failed('access_denied'),
      error_description: 'The e-mail is linked to another account of the provider',
    }
  }
  return failed(statusOf(refusal) === 503 ? 'temporarily_unavailable' : 'server_error')
}

function failed(error: OauthFault['error']): Record<string, string> {
  return { error }
}

/**
 * Redirects the browser, so that the tokens in the address are not cached and not sent to other sites as a
 * referrer.
 */
function redirectTo(location: string, more: readonly (readonly [string, string])[] = []): Answer {
  return {
    status: 302,
    body: '',
    contentType: 'text/plain',
    headers: [['Location', location], ['Referrer-Policy', 'no-referrer'], ...more],
  }
}

export const oauthRoutes = [authorize, callback]
