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

/** A provider that is set up, and where it sends browsers back to. */
interface SetUp {
  provider: OauthProviderName
  client: OauthProvider
  callbackUrl: string
}

/** Where the results of a sign-in go. */
interface ResultTarget {
  redirectUri: string
  mode: RedirectMode
}

const answers: RouteDocs['answers'] = {
  302: { mediaType: 'text/plain', description: 'Nothing but `Location`, which the browser follows' },
}

const notStartedHere = refuse(
  'oauth_failed',
  'Expected a sign-in that this browser started less than ten minutes ago',
)
const noneAllowed = refuse('redirect_not_allowed', 'Expected SERVICE_OAUTH_ALLOWED_REDIRECT_URIS to be set')
const notAllowed = refuse(
  'redirect_not_allowed',
  'Expected one redirect_uri, of SERVICE_OAUTH_ALLOWED_REDIRECT_URIS or below one of them',
)

/** GET /v1/auth/oauth/:provider/authorize: sends the browser to the provider, bound to it by a cookie. */
const authorize: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/oauth/:provider/authorize',
  caller: 'anyone',
  writes: true,
  errors: ['not_found', 'redirect_not_allowed', 'oauth_not_configured'],
  docs: {
    summary: 'Sign in by another service: a browser is sent here',
    query: {
      redirect_uri: Type.String({
        description: 'Where the tokens go: an address of SERVICE_OAUTH_ALLOWED_REDIRECT_URIS or below one',
      }),
      redirect_mode: Type.Enum(['query', 'fragment'], {
        default: 'query',
        description: 'Whether they stand behind `?`, for a server, or behind `#`, for a page',
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
    const setUp = setUpOf(provider, request, context)
    if ('code' in setUp) return setUp
    const target = targetOf(request, context)
    return 'code' in target ? target : start(request, context, { ...setUp, ...target })
  },
}

/**
 * GET /v1/auth/oauth/:provider/callback: signs in who comes back from the provider. Until the state is known to be this
 * browser's there is nowhere to send it: a problem is answered. From then on every outcome goes to the application.
 */
const callback: AuthRouteEntry = {
  method: 'get',
  path: '/v1/auth/oauth/:provider/callback',
  anyQuery: true,
  caller: 'anyone',
  writes: true,
  errors: ['not_found', 'oauth_failed', 'oauth_not_configured'],
  docs: {
    summary: 'Where a provider sends the browser back to',
    query: {
      state: Type.String({ description: 'What authorize sent to the provider; works once' }),
      code: Type.String({ description: 'What the provider gives an identity for' }),
      iss: Type.String({ description: 'Who answers (RFC 9207)' }),
      error: Type.String({ description: 'Why there is no code (RFC 6749, 4.1.2.1)' }),
    },
    required: ['state'],
    answers,
  },
  async handle(request, context) {
    const provider = providerOf(request)
    if (typeof provider !== 'string') return provider
    const setUp = setUpOf(provider, request, context)
    if ('code' in setUp) return setUp
    const [state = '', ...others] = request.query.getAll('state')
    const stateHash = others.length === 0 ? hashOneTimeToken(state) : undefined
    if (stateHash === undefined) {
      const failure = { method: 'oauth', reason: 'unknown_state', refusal: notStartedHere } as const
      return notFinished(request, await signInFailed(request, context, failure))
    }
    // Without its cookie it is another browser: no hash is empty.
    const browserHash = hashOneTimeToken(browserOf(request, setUp) ?? '') ?? ''
    const back = await context.change(request, { kind: 'oauthReturn', stateHash, provider, browserHash })
    if ('code' in back || back.kind !== 'oauthReturn') return notFinished(request, unexpectedAnswer(back))
    const { client, callbackUrl } = setUp
    const secrets = context.oauth.secretsOf(request.namespace, state)
    const identity = await client.identify({ state, callbackUrl, query: request.query, ...secrets })
    const results =
      'error' in identity
        ? await refusedBy(request, context, identity)
        : await enter(request, context, { provider, identity })
    return redirectTo(redirectWith(back.redirectUri, back.mode, results))
  },
}

/** Records what a provider answered instead of an identity. @returns the members of the address that the browser goes on to */
async function refusedBy(
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

/** The provider as it is set up; 501 oauth_not_configured. */
function setUpOf(
  provider: OauthProviderName,
  { namespace }: AuthRequest,
  { oauth }: AuthContext,
): SetUp | Refusal {
  const client = oauth.providers.get(provider)
  const { redirectBaseUrl } = oauth
  if (client === undefined || redirectBaseUrl === undefined) {
    const name = `SERVICE_OAUTH_${provider.toUpperCase()}_CLIENT_ID`
    const detail = `Expected ${name}, its secret and SERVICE_OAUTH_REDIRECT_BASE_URL to be set`
    return refuse('oauth_not_configured', detail)
  }
  const organism = namespace.id === '' ? '' : `/organisms/${namespace.id}`
  const base = redirectBaseUrl.replace(/\/+$/, '')
  return { provider, client, callbackUrl: `${base}/v1${organism}/auth/oauth/${provider}/callback` }
}

/** Where the results go; 400, and never a redirect, for anywhere that was not allowed. */
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
  { provider, client, callbackUrl, redirectUri, mode }: SetUp & ResultTarget,
): Promise<Answer | Refusal> {
  const { token: state, hash: stateHash } = makeOneTimeToken(context.random)
  const secrets = context.oauth.secretsOf(request.namespace, state)
  const url = await client.authorizationUrl({ state, callbackUrl, ...secrets })
  if ('error' in url)
    return redirectTo(redirectWith(redirectUri, mode, await refusedBy(request, context, url)))
  const place = { provider, callbackUrl }
  const known = browserOf(request, place)
  const knownHash = known === undefined ? undefined : hashOneTimeToken(known)
  const browser =
    known === undefined || knownHash === undefined
      ? makeOneTimeToken(context.random)
      : { token: known, hash: knownHash }
  const expiresAtMs = context.nowMs() + limits.oauthStateSecs * 1_000
  const row = { provider, browserHash: browser.hash, redirectUri, mode, expiresAtMs }
  const answer = await context.change(request, { kind: 'oauthStart', stateHash, row })
  if ('code' in answer || answer.kind !== 'done') return unexpectedAnswer(answer)
  return redirectTo(url.href, [['Set-Cookie', oauthCookie(place, browser.token, limits.oauthStateSecs)]])
}

/**
 * A sign-in that is not this browser's, or is over: a person is shown a page with the way back to the application where
 * that is known, every other client a problem, which says nothing of it.
 */
function notFinished({ headers }: AuthRequest, refusal: Refusal): Answer | Refusal {
  if (refusal.code !== 'oauth_failed') return refusal
  const { extra = {}, ...problem } = refusal
  if (!headers.accept.includes('text/html')) return problem
  const to = extra['redirect_uri']
  const { origin, host } = typeof to === 'string' ? new URL(to) : { origin: undefined, host: undefined }
  const way = origin === undefined ? 'the application' : `<a href="${origin}/">${host}</a>`
  const why = 'It was begun in another browser or more than ten minutes ago, or it has been finished already.'
  return {
    status: statusOf(refusal),
    body: plainPage(
      'The sign-in was not finished',
      `<p>${why}</p>\n<p>Go back to ${way} and sign in again.</p>\n`,
    ),
    contentType: 'text/html; charset=utf-8',
    headers: [...plainPageHeaders(), ['WWW-Authenticate', 'Bearer']],
  }
}

/** What the browser brought that it was given by authorize. */
function browserOf(
  { headers }: AuthRequest,
  place: Pick<SetUp, 'provider' | 'callbackUrl'>,
): string | undefined {
  return readCookie(headers.cookie, oauthCookieName(place))
}

/** Signs in who the provider vouches for. @returns the members of the address that the browser goes on to */
async function enter(
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
    return { ...failed('access_denied'), error_description: 'The provider does not call the e-mail verified' }
  }
  if (refusal.code === 'email_exists') {
    return {
      ...failed('access_denied'),
      error_description: 'The e-mail belongs to another account of the provider',
    }
  }
  return failed(statusOf(refusal) === 503 ? 'temporarily_unavailable' : 'server_error')
}

function failed(error: OauthFault['error']): Record<string, string> {
  return { error }
}

/** Sends the browser on; what is in the address stays in no cache and reaches no other site. */
function redirectTo(location: string, more: readonly (readonly [string, string])[] = []): Answer {
  return {
    status: 302,
    body: '',
    contentType: 'text/plain',
    headers: [['Location', location], ['Referrer-Policy', 'no-referrer'], ...more],
  }
}

export const oauthRoutes = [authorize, callback]
