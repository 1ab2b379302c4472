import { RefusedError } from '../base/errors.js'
import { oauthKey, type OauthProvider, type OauthProviderName, oauthSecrets } from '../auth/oauth.js'
import { bundledBlocklist } from '../auth/password-policy.js'
import type { License } from '../auth/license.js'
import { type Namespace, rootNamespace } from '../auth/namespace.js'
import { parseAllowedRedirect } from '../auth/redirect.js'
import { type Clock, steadyClock, systemClock } from '../base/clock.js'
import type { Logger } from '../base/log.js'
import type { Config } from '../settings/config.js'
import type { OauthConfig } from '../settings/oauth.js'
import { answersContainTokens } from '../settings/open-modes.js'
import type { DataDirectory } from '../data/directory.js'
import type { PasswordPool } from '../dispatch/pools/password-pool.js'
import type { RequestShard } from '../dispatch/links/shard-link.js'
import type { Shards } from '../dispatch/links/shards.js'
import { activation, authContext, Namespaces } from '../front/http/auth/context.js'
import { Revocations } from '../front/http/auth/revocations.js'
import { UserTokens } from '../front/http/auth/tokens.js'
import type { AuthHandling } from '../front/http/handling.js'
import type { StreamHub } from '../front/http/streams/hub.js'
import type { OpenTransfers } from '../front/limits/transfers.js'
import type { LoginPermits } from '../protocol/login-permits.js'
import type { AuthRules, KeyEpochs, Revocation } from '../protocol/auth-messages.js'
import type { OauthFlow, PasskeyCeremonies } from '../front/routes/auth-route.js'

/** The parts of the auth add-on in each front. */
export interface AuthParts {
  handling: AuthHandling
  tokens: UserTokens
  /** Sessions, tokens or users have ended. */
  ended(revocations: readonly (Revocation & { namespace: string })[]): void
  /** Signing keys of namespaces were rotated. */
  rotated(namespaces: readonly string[]): void
  /**
   * Loads the revocations of a shard, so that no revoked token is accepted.
   * @throws Error if the shard does not answer with them
   */
  learn(request: RequestShard): Promise<void>
}

/** Dependencies of the auth add-on. */
export interface AuthSurroundings {
  clock: Clock
  directory: Pick<DataDirectory, 'masterSeed' | 'tokenEra'>
  shards: Shards
  log: Logger
  /** Open streams, which end with the token that opened them. */
  streams: StreamHub
  /** Bodies, exports and large answers in progress, which end in the same way. */
  transfers: OpenTransfers
  /** Services shared by all fronts. */
  services: AuthServices
}

/** The services of the auth add-on that the main thread provides to all fronts. */
export interface AuthServices {
  passwords: Pick<PasswordPool, 'hash' | 'verify'>
  gate: LoginPermits
  license: License | undefined
  mailOn: boolean
  /** A mail was added to the outbox. */
  onMail(): void
}

/** The auth settings that shards need. */
export function authRules({ auth }: Config, { tokenEra }: DataDirectory): AuthRules {
  return {
    lockout: { maxAttempts: auth.maxLoginAttempts, durationSecs: auth.lockoutDurationSecs },
    refreshExpirySecs: auth.refreshTokenExpirySecs,
    jwtExpirySecs: auth.jwtExpirySecs,
    requireEmailVerify: auth.requireEmailVerify,
    metadataBytesMax: auth.metadataBytesMax,
    tokenEra,
  }
}

/** The add-on while it is switched off. */
export function authOff(config: Config): AuthHandling {
  return {
    refusal: activation(false, undefined, systemClock),
    root: rootNamespace(config.agentId),
    context: undefined,
    missing: () => undefined,
  }
}

/** Creates the auth add-on if it is on, even without a license, so that issued tokens stay valid. */
export async function makeAuth(config: Config, around: AuthSurroundings): Promise<AuthParts | undefined> {
  if (!config.auth.enabled) return undefined
  const { clock, directory, shards, services } = around
  const root = rootNamespace(config.agentId)
  const namespaces = new Namespaces(shards)
  const missing = (namespace: Namespace) => namespaces.missing(namespace)
  const revocations = new Revocations(clock, steadyClock)
  const tokens = new UserTokens({
    masterSeed: directory.masterSeed,
    tokenEra: directory.tokenEra,
    issuer: config.auth.issuer,
    jwtExpirySecs: config.auth.jwtExpirySecs,
    root,
    revocations,
    clock,
    missing,
    epochsOf: (namespace) => epochsOf(shards, namespace),
  })
  around.transfers.watchUsers((user) => tokens.revalidate(user))
  const context = authContext(await contextParts(config, around, tokens))
  const refusal = activation(true, services.license, clock)
  return { handling: { refusal, root, context, missing }, tokens, ...noticesOf(around, tokens, revocations) }
}

/** The parts behind the auth routes. */
async function contextParts(
  config: Config,
  { clock, directory, shards, log, services }: AuthSurroundings,
  tokens: UserTokens,
): Promise<Parameters<typeof authContext>[0]> {
  const { passwords, gate, mailOn } = services
  return {
    shards,
    passwords,
    gate,
    tokens,
    passkeys: await passkeyCeremonies(config),
    oauth: await oauthFlow(config.oauth, { masterSeed: directory.masterSeed, clock, log }),
    clock,
    settings: {
      jwtExpirySecs: config.auth.jwtExpirySecs,
      magicLinkExpirySecs: config.auth.magicLinkExpirySecs,
      requireEmailVerify: config.auth.requireEmailVerify,
      // Loaded before the server listens, because it blocks the front for tens of milliseconds.
      passwordBlocklist: config.auth.passwordBlocklist ? bundledBlocklist() : undefined,
      mailOn,
      answersLinks: answersContainTokens(config) ? schemeOf(config) : undefined,
      loginAttemptsMax: config.auth.maxLoginAttempts,
    },
    onMail: () => services.onMail(),
    onFailure({ namespace, origin: { requestId } }, { method, reason, userId }) {
      const about = { method, reason, user_id: userId, namespace: namespace.id, request_id: requestId }
      log.info(about, 'a sign-in failed')
    },
  }
}

/** What a front does when credentials were revoked: ends what they have opened. */
function noticesOf(
  { streams, transfers }: AuthSurroundings,
  tokens: UserTokens,
  revocations: Revocations,
): Pick<AuthParts, 'ended' | 'rotated' | 'learn'> {
  const ended: AuthParts['ended'] = (all) => {
    for (const { namespace, ...one } of all) revocations.add(namespace, one)
    streams.endInvalidUsers((user) => tokens.revalidate(user) === undefined)
    transfers.endInvalidUsers()
  }
  return {
    ended,
    rotated(namespaces) {
      for (const id of namespaces) tokens.rotated(id)
    },
    async learn(request) {
      const outcome = await request({ kind: 'revocationsList' })
      if (outcome.kind !== 'revocations')
        throw new Error(`Could not read the revocations: ${JSON.stringify(outcome)}`)
      tokens.forgetKeys()
      ended(outcome.rows)
    },
  }
}

function schemeOf({ tls }: Config): 'http' | 'https' {
  return tls === undefined ? 'http' : 'https'
}

async function epochsOf(shards: Shards, { id, agent }: Namespace): Promise<KeyEpochs> {
  const outcome = await shards.request(agent, {
    kind: 'authLookup',
    agent,
    namespace: id,
    lookup: { kind: 'keyEpochs' },
  })
  if (outcome.kind === 'auth' && outcome.answer.kind === 'keyEpochs') return outcome.answer
  // The shard is restarting, or the node is cut off: not the fault of the request.
  if ('code' in outcome) throw new RefusedError(outcome)
  throw new Error(`Could not read the signing keys of a namespace: ${outcome.kind}`)
}

/** Passkeys, if they are configured. Imported only then: the libraries take a quarter of a second to load. */
async function passkeyCeremonies({ passkeys }: Config): Promise<PasskeyCeremonies | undefined> {
  if (passkeys === undefined) return undefined
  const { PasskeyCeremony } = await import('../auth/passkey-ceremony.js')
  return new PasskeyCeremony(passkeys)
}

/** Sign-in with external providers, as far as it is configured. */
async function oauthFlow(
  oauth: OauthConfig | undefined,
  { masterSeed, ...around }: { masterSeed: Uint8Array; clock: Clock; log: Logger },
): Promise<OauthFlow> {
  const key = oauthKey(masterSeed)
  const allowed = oauth?.allowedRedirectUris ?? []
  return {
    providers: await providersOf(oauth, around),
    redirectBaseUrl: oauth?.redirectBaseUrl,
    allowedRedirects: allowed.map((text) => parseAllowedRedirect(text)).filter((one) => one !== undefined),
    allowAnyRedirect: oauth?.allowAnyRedirectUri ?? false,
    secretsOf: (namespace, state) => oauthSecrets(key, namespace.id, state),
  }
}

async function providersOf(
  oauth: OauthConfig | undefined,
  around: { clock: Clock; log: Logger },
): Promise<ReadonlyMap<OauthProviderName, OauthProvider>> {
  if (oauth?.google === undefined && oauth?.github === undefined) return new Map()
  // Imported only if a provider is configured.
  const { oauthProviders } = await import('../outbound/oauth-providers.js')
  return oauthProviders(oauth, around)
}
