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

/** Who may use an auth route: anyone, the user that a token names, or a key with the namespace's admin scope. */
export type AuthCaller = 'anyone' | 'user' | 'admin'

/**
 * A route of the auth add-on. Its path is that of the root namespace, `/v1/auth/…`; each is mirrored for organisms
 * (docs/adr/0017-organisms.md).
 */
export interface AuthRoute extends RouteBase {
  kind: 'auth'
  caller: AuthCaller
  /** A GET that writes, as browsers are sent to it. */
  writes?: true
  bodyBytesMax?: number
  /**
   * The first path parameter names an organism, whose namespace is meant. `initialised`: 404 where it is not there.
   * Absent: the root namespace.
   */
  organism?: 'initialised' | 'any'
  /**
   * Serves callers with a valid credential without a license as well, since tokens go on without one: it ends access, or
   * shows whose can be ended.
   */
  endsAccess?: true
  /** Answers while the add-on is off, in place of 404. */
  whileOff?: () => Answer
  handle(request: AuthRequest, context: AuthContext): Promise<Answer | Refusal>
}

/** What the file of an auth route says of it; the rest is the same for all (src/front/routes/auth/auth-routes.ts). */
export interface AuthRouteEntry extends Omit<AuthRoute, 'kind' | 'scope' | 'docs'> {
  docs: Omit<RouteDocs, 'tag'>
}

/** A request to an auth route. */
export interface AuthRequest extends RouteRequest {
  namespace: Namespace
  origin: AuthOrigin
  /** The claims of the caller's token, for routes of users. */
  claims?: TokenClaims
}

/** What auth routes work with. */
export interface AuthContext {
  settings: AuthRouteSettings
  /** Changes the namespace; what the change ended is refused from then on. Resolves when it is on disk. */
  change(request: AuthRequest, change: Change): Promise<AuthAnswer | Refusal>
  look(request: AuthRequest, lookup: Lookup): Promise<AuthAnswer | Refusal>
  passwords: Passwords
  /** Leads a login by password through, so that parallel ones do not guess more often than the lockout allows. */
  attempt<State, Value>(key: string, attempt: PasswordAttempt<State, Value>): Promise<Value | Refusal>
  tokens: TokenIssuer
  /** Undefined while passkeys are not configured. */
  passkeys: PasskeyCeremonies | undefined
  oauth: OauthFlow
  nowMs(): number
  random: RandomBytes
}

/** Settings that auth routes answer by. */
export interface AuthRouteSettings {
  jwtExpirySecs: number
  magicLinkExpirySecs: number
  requireEmailVerify: boolean
  /** Folded passwords that are refused; undefined while the list is off. */
  passwordBlocklist: ReadonlySet<string> | undefined
  /** False: answers to the root key have the tokens that mails would. */
  mailOn: boolean
  /** Answers to all callers have the tokens of magic links and verify links. */
  answersLinks: boolean
  loginAttemptsMax: number
}

/** Password hashing, in its pool; refused with `overloaded` when that is full. */
export interface Passwords {
  hash(password: string): Promise<string | Refusal>
  /** Without a hash it takes as long and does not match. */
  verify(password: string, encoded: string | undefined): Promise<Verification | Refusal>
}

/** One guess at a password (src/dispatch/duties/login-gate.ts). */
export interface PasswordAttempt<State, Value> {
  look(): Promise<
    { kind: 'open'; failures: number; state: State } | { kind: 'answered'; answer: Value | Refusal }
  >
  verify(state: State): Promise<Value | Refusal>
}

/** Tokens of users and the keys that they are signed by. */
export interface TokenIssuer {
  /** A token for the session, and the refresh token in force. */
  issue(namespace: Namespace, signedIn: SignedIn): Promise<IssuedTokens>
  /** The session and generation of a refresh token; undefined when it was not made for the namespace. */
  readRefreshToken(namespace: Namespace, token: string): { sid: string; generation: number } | undefined
  /** The device of a device token; undefined when it was not made for the namespace. */
  readDeviceToken(namespace: Namespace, token: string): DeviceClaim | undefined
  /** The public keys: the one in force, the next one, and those before whose tokens may still be valid. */
  publicKeys(namespace: Namespace): Promise<PublicJwk[]>
}

/** The ceremonies of passkeys for the relying party of the settings (src/auth/passkey-ceremony.ts). */
export interface PasskeyCeremonies {
  /** What `navigator.credentials.create` is called with. @param passkeys that the user has already */
  creationOptions(
    challenge: string,
    user: Pick<AuthUser, 'userId' | 'email'>,
    passkeys: readonly PasskeyRow[],
  ): Promise<CreationOptions>
  /** What `navigator.credentials.get` is called with. @param allowed credential ids; undefined: any */
  requestOptions(challenge: string, allowed: readonly string[] | undefined): Promise<RequestOptions>
  /** The new passkey; undefined when anything about it is not as it has to be. */
  verifyRegistration(credential: RegistrationCredential, challenge: string): Promise<NewPasskey | undefined>
  /** What a good assertion said; undefined for any other. Without a passkey it takes as long and is not good. */
  verifyAssertion(
    credential: AssertionCredential,
    expected: ExpectedAssertion,
  ): Promise<VerifiedAssertion | undefined>
  /** What was wrong with an assertion that did not verify. */
  assertionFault(credential: AssertionCredential, expected: ExpectedAssertion): SignInReason
}

/** Sign-in by other services, as it is set up (docs/adr/0011-oauth-sign-in.md). */
export interface OauthFlow {
  /** Those that are set up. */
  providers: ReadonlyMap<OauthProviderName, OauthProvider>
  /** The address of this server for browsers; undefined while none is set. */
  redirectBaseUrl: string | undefined
  allowedRedirects: readonly AllowedRedirect[]
  /** Development only: the list is not asked. */
  allowAnyRedirect: boolean
  /** What binds the halves of the sign-in of a state together. */
  secretsOf(namespace: Namespace, state: string): OauthSecrets
}

/** What token answers carry. */
export interface IssuedTokens {
  token: string
  refresh_token: string
  /** What later logins of this device are counted by. */
  device_token: string
  token_type: 'Bearer'
  /** Seconds. */
  expires_in: number
}
