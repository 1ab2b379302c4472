import type { LoginPermits } from '../../protocol/login-permits.js'
import type { DeviceClaim } from '../../auth/device-token.js'
import type { TokenClaims } from '../../auth/jwt.js'
import type { PublicJwk } from '../../auth/jwt-key.js'
import type { Namespace } from '../../auth/namespace.js'
import type { OauthProvider, OauthProviderName, OauthSecrets } from '../../auth/oauth.js'
import type {
  AssertionCredential,
  CreationOptions,
  ExpectedAssertion,
  NewPasskey,
  PasskeyRow,
  RegistrationCredential,
  RequestOptions,
  VerifiedAssertion,
} from '../../auth/passkey.js'
import type { SignInReason } from '../../auth/sign-in-failure.js'
import type { AllowedRedirect } from '../../auth/redirect.js'
import type { Refusal } from '../../base/errors.js'
import type { RandomBytes } from '../../base/random.js'
import type {
  AuthAnswer,
  AuthOrigin,
  AuthUser,
  Change,
  Lookup,
  SignedIn,
} from '../../protocol/auth-messages.js'
import type { Verification } from '../../protocol/password-tasks.js'
import type { Answer, RouteBase, RouteDocs, RouteRequest } from './route.js'

/**
 * The callers that an auth route accepts: anyone, the user of a token, or a key with the admin scope of the
 * namespace.
 */
export type AuthCaller = 'anyone' | 'user' | 'admin'

/**
 * A route of the auth add-on. Its path is that of the root namespace, `/v1/auth/…`; each route has a
 * counterpart for organisms (docs/adr/0017-organisms.md).
 */
export interface AuthRoute extends RouteBase {
  kind: 'auth'
  caller: AuthCaller
  /** A GET that writes, because browsers are redirected to it. */
  writes?: true
  bodyBytesMax?: number
  /**
   * The first path parameter names an organism, whose namespace is used. `initialised`: 404 if that namespace
   * does not exist. Absent: the root namespace.
   */
  organism?: 'initialised' | 'any'
  /**
   * Also serves callers with a valid credential while the server has no license, because their tokens stay
   * valid: the route ends access, and lists nothing.
   */
  endsAccess?: true
  /** Answers while the add-on is disabled, instead of 404. */
  whileOff?: () => Answer
  handle(request: AuthRequest, context: AuthContext): Promise<Answer | Refusal>
}

/**
 * The parts of an auth route that its file declares; the others are the same for all
 * (src/front/routes/auth/auth-routes.ts).
 */
export interface AuthRouteEntry extends Omit<AuthRoute, 'kind' | 'scope' | 'docs'> {
  docs: Omit<RouteDocs, 'tag'>
}

export interface AuthRequest extends RouteRequest {
  namespace: Namespace
  origin: AuthOrigin
  /** The claims of the caller's token, for routes that require a user. */
  claims?: TokenClaims
}

/** The functions and settings that auth routes use. */
export interface AuthContext {
  settings: AuthRouteSettings
  /** Changes the namespace. Resolves when the change is on disk and its revocations are applied. */
  change(request: AuthRequest, change: Change): Promise<AuthAnswer | Refusal>
  lookUp(request: AuthRequest, lookup: Lookup): Promise<AuthAnswer | Refusal>
  passwords: Passwords
  /** The turn of a password login: parallel logins do not guess more often than the lockout allows. */
  enter: LoginPermits['enter']
  tokens: TokenIssuer
  passkeys: PasskeyCeremonies | undefined
  oauth: OauthFlow
  nowMs(): number
  random: RandomBytes
}

export interface AuthRouteSettings {
  jwtExpirySecs: number
  magicLinkExpirySecs: number
  requireEmailVerify: boolean
  /** Normalized passwords that are refused; undefined if the list is disabled. */
  passwordBlocklist: ReadonlySet<string> | undefined
  /** If false, answers to the root key contain the tokens that mails would contain. */
  mailOn: boolean
  /**
   * The scheme of the server, if answers to requests of this machine contain the tokens of magic links and
   * verify links.
   */
  answersLinks: 'http' | 'https' | undefined
  loginAttemptsMax: number
}

/** Password hashing in a thread pool; refused with `overloaded` if the pool is full. */
export interface Passwords {
  hash(password: string): Promise<string | Refusal>
  /** Without a hash, takes as long and does not match. */
  verify(password: string, encoded: string | undefined): Promise<Verification | Refusal>
}

/** Issues tokens of users and publishes their signing keys. */
export interface TokenIssuer {
  /** A token for the session, and its current refresh token. */
  issue(namespace: Namespace, signedIn: SignedIn): Promise<IssuedTokens>
  /** The session and generation of a refresh token; undefined if it was not issued for the namespace. */
  readRefreshToken(namespace: Namespace, token: string): { sid: string; generation: number } | undefined
  /** The device of a device token; undefined if it was not issued for the namespace. */
  readDeviceToken(namespace: Namespace, token: string): DeviceClaim | undefined
  /** The public keys: the current one, the next one, and retired ones whose tokens may still be valid. */
  publicKeys(namespace: Namespace): Promise<PublicJwk[]>
}

/** The ceremonies of passkeys for the relying party of the settings (src/auth/passkey-ceremony.ts). */
export interface PasskeyCeremonies {
  /** The options for `navigator.credentials.create`. @param passkeys existing passkeys of the user */
  creationOptions(
    challenge: string,
    user: Pick<AuthUser, 'userId' | 'email'>,
    passkeys: readonly PasskeyRow[],
  ): Promise<CreationOptions>
  /** The options for `navigator.credentials.get`. @param allowed credential ids; undefined for any */
  requestOptions(challenge: string, allowed: readonly string[] | undefined): Promise<RequestOptions>
  /** The new passkey; undefined if the registration is invalid. */
  verifyRegistration(credential: RegistrationCredential, challenge: string): Promise<NewPasskey | undefined>
  /** The data of a valid assertion; undefined if invalid. Without a passkey, takes as long and is invalid. */
  verifyAssertion(
    credential: AssertionCredential,
    expected: ExpectedAssertion,
  ): Promise<VerifiedAssertion | undefined>
  /** Why a registration is invalid. */
  registrationFault(credential: RegistrationCredential, challenge: string): SignInReason
  /** The origins of pages that may use the passkeys. */
  readonly webOrigins: readonly string[]
  /** Why an assertion is invalid. */
  assertionFault(credential: AssertionCredential, expected: ExpectedAssertion): SignInReason
}

/** Configured sign-in with other providers (docs/adr/0011-oauth-sign-in.md). */
export interface OauthFlow {
  providers: ReadonlyMap<OauthProviderName, OauthProvider>
  /** The address of this server for browsers; undefined if not configured. */
  redirectBaseUrl: string | undefined
  allowedRedirects: readonly AllowedRedirect[]
  /** Development only: any redirect is allowed. */
  allowAnyRedirect: boolean
  /** Secrets derived from a state, which link the two requests of a sign-in. */
  secretsOf(namespace: Namespace, state: string): OauthSecrets
}

export interface IssuedTokens {
  token: string
  refresh_token: string
  /** Identifies this device in later logins, so that its failed logins are counted separately. */
  device_token: string
  token_type: 'Bearer'
  /** Lifetime of the token in seconds. */
  expires_in: number
}
